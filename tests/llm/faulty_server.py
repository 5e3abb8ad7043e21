"""A chat-completions server on this machine that misbehaves as it is told."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]
Say = Callable[[Request], str]

CONTEXT = {
    "error": {
        "message": "This model's maximum context length is 64 tokens.",
        "code": "context_length_exceeded",
    }
}


def chat(text: str | None, **changes: Any) -> dict[str, Any]:
    """Return a whole reply; `changes` replace parts of it, None leaves one out."""
    message = {"role": "assistant", "content": text} | changes.pop("message", {})
    reply = {
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": message, "finish_reason": changes.pop("finish", "stop")}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return {key: value for key, value in {**reply, **changes}.items() if value is not None}


class FaultyServer(ThreadingHTTPServer):
    """Answers request by request with the next behaviour, "ok" after the last.

    A behaviour is a name, a status with a body, a JSON reply, or a function of the request that
    returns one of these. `requests` are the bodies that came in, `keys` the keys they came with.
    """

    def __init__(self, behaviours: Sequence[Any], say: Say) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours = list(behaviours)
        self.say = say
        self.requests: list[Request] = []
        self.keys: list[str | None] = []
        self.at_once = self.most_at_once = 0
        self.released = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def take(self, request: Request, key: str | None) -> Any:
        with self.lock:
            self.requests.append(request)
            self.keys.append(key)
            behaviour = self.behaviours.pop(0) if self.behaviours else "ok"
        return behaviour(request) if callable(behaviour) else behaviour

    def count(self, change: int) -> None:
        with self.lock:
            self.at_once += change
            self.most_at_once = max(self.most_at_once, self.at_once)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyServer

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        assert self.path.partition("?")[0] == "/v1/chat/completions"
        self.server.count(1)
        try:
            self.behave(self.server.take(request, self.headers.get("Authorization")), request)
        except OSError:  # the client has gone
            self.close_connection = True
        finally:
            self.server.count(-1)

    def behave(self, behaviour: Any, request: Request) -> None:
        if isinstance(behaviour, tuple):
            self.send(*behaviour)
        elif isinstance(behaviour, dict):
            self.send(200, json.dumps(behaviour))
        else:
            getattr(self, behaviour)(request)

    def send(self, status: int, body: str, sort: str = "application/json", **headers: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", sort)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def ok(self, request: Request) -> None:
        self.send(200, json.dumps(chat(self.server.say(request))))

    def busy(self, request: Request) -> None:
        self.send(429, '{"error": "slow down"}', Retry_After="0")

    def broken(self, request: Request) -> None:
        self.send(500, "the\nserver is \x1b[31mburning\x1b[0m " + "x" * 500, "text/plain")

    def html(self, request: Request) -> None:
        self.send(200, "<html>Please log in</html>", "text/html")

    def half(self, request: Request) -> None:
        text = json.dumps(chat("never seen"))
        self.send(200, text[: len(text) // 2])

    def empty(self, request: Request) -> None:
        self.send(200, json.dumps(chat("", choices=[])))

    def context(self, request: Request) -> None:
        self.send(400, json.dumps(CONTEXT))

    def hang(self, request: Request) -> None:
        self.server.released.wait()
        self.close_connection = True

    def drip(self, request: Request) -> None:
        """Send the headers of a whole reply, and its body a byte now and then."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.drop_by_drop()

    def drip_headers(self, request: Request) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        self.drop_by_drop()

    def drop_by_drop(self) -> None:
        while not self.server.released.wait(0.02):
            self.wfile.write(b" ")
        self.close_connection = True

    def closed(self, request: Request) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def cut(self, request: Request) -> None:
        """Promise more than is sent."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices": [')
        self.closed(request)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def hello(request: Request) -> str:
    return "hello"


@contextmanager
def serving(*behaviours: Any, say: Say = hello) -> Iterator[FaultyServer]:
    """Run a server while the block runs."""
    with FaultyServer(behaviours, say) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
