"""The client against a real server that misbehaves: what is asked again, and what is said."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from llm.faulty_server import FaultyServer, chat, serving

from sandmle.config import PolicySection
from sandmle.errors import ContextError, ModelError, UsageError
from sandmle.llm.base import Completion, Message
from sandmle.llm.openai import Endpoint

KEY = "sk-test-0123456789abcdef"
TALK = [Message("system", "be brief"), Message("user", "hello?")]


def section(**settings) -> PolicySection:
    return PolicySection(**{"name": "openai:m", "timeout_s": 10, "retries": 2, **settings})


@contextmanager
def endpoint(server: FaultyServer, **settings) -> Iterator[Endpoint]:
    made = Endpoint("m", section(**settings), server.url, KEY, backoff_s=0.01)
    with closing(made):
        yield made


def ask(server: FaultyServer, **settings) -> Completion:
    with endpoint(server, **settings) as made:
        return made.session(7).complete(TALK)


def fails(server: FaultyServer, **settings) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(server, **settings)
    line = str(caught.value)
    assert "\n" not in line
    assert line.isprintable()
    assert KEY not in line
    assert line.startswith(f"POST {server.url}/chat/completions (model m): ")
    return caught.value


def test_what_is_asked_and_what_comes_back() -> None:
    with serving() as server:
        reply = ask(server, temperature=0.5, turn_tokens=64)
    assert server.requests == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello?"},
            ],
            "temperature": 0.5,
            "max_tokens": 64,
            "seed": 7,
        }
    ]
    assert server.keys == [f"Bearer {KEY}"]
    assert reply == Completion("hello", 100, 10, usd=None, cut_off=False)


def test_a_reply_has_its_price_and_says_that_it_was_cut_off() -> None:
    with serving(chat("a", finish="length"), chat("b", usage=None)) as server:
        assert ask(server, usd_per_million=(2.0, 10.0)) == Completion("a", 100, 10, 0.0003, True)
        assert ask(server, usd_per_million=(2.0, 10.0)) == Completion("b")


@pytest.mark.parametrize(
    ("content", "beside", "text"),
    [
        ("do", {"reasoning_content": "why\n"}, "<think>\nwhy\n</think>\ndo"),
        ("do", {"reasoning": "why"}, "<think>\nwhy\n</think>\ndo"),
        (None, {"reasoning_content": "why"}, "<think>\nwhy\n</think>\n"),
        ("<think>I</think>do", {"reasoning_content": "why"}, "<think>I</think>do"),
        ("do", {"reasoning_content": None, "reasoning": ""}, "do"),
        ("do", {"reasoning": {"effort": 1}}, "do"),
        (None, {}, ""),
    ],
)
def test_thoughts_beside_the_reply_are_kept(content: str | None, beside: dict, text: str) -> None:
    with serving(chat(content, message=beside)) as server:
        assert ask(server).text == text


AGAIN = {
    "busy": "HTTP 429: ",
    "broken": "HTTP 500: the server is ?[31mburning?[0m xxx",
    "html": "no chat completion came back: <html>Please log in</html>",
    "half": 'no chat completion came back: {"object"',
    "empty": 'no chat completion came back: {"object": "chat.completion", "choices": []',
    "closed": "RemoteProtocolError",
    "cut": "RemoteProtocolError",
    **{(status, "gone"): f"HTTP {status}: gone" for status in (408, 502, 503, 504)},
}


@pytest.mark.parametrize(("behaviour", "says"), AGAIN.items(), ids=str)
def test_what_may_pass_is_asked_again(behaviour, says: str) -> None:
    with serving(behaviour, behaviour) as server:
        assert ask(server).text == "hello"
        assert len(server.requests) == 3
    with serving(behaviour, behaviour, behaviour) as server:
        line = str(fails(server))
        assert len(server.requests) == 3
    assert f"(model m): {says}" in line
    assert line.endswith("(3 tries)")
    assert len(line) < 400


@pytest.mark.parametrize("behaviour", ["hang", "drip", "drip_headers"])
def test_a_try_has_a_deadline_whatever_the_server_does(behaviour: str) -> None:
    with serving(behaviour) as server:
        assert ask(server, timeout_s=0.3, retries=9).text == "hello"
    with serving(behaviour) as server:
        line = str(fails(server, timeout_s=0.3, retries=0))
    assert line.endswith("no whole reply within 0.3 s (1 try)")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 501, 302])
def test_what_will_not_pass_is_asked_once(status: int) -> None:
    with serving((status, f"no {KEY}\nhere")) as server:
        error = fails(server)
        assert len(server.requests) == 1
    assert type(error) is ModelError
    assert str(error).endswith(f"HTTP {status}: no *** here (1 try)")


def test_a_model_that_has_another_name_for_the_limit_gets_it() -> None:
    refusal = (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with serving(refusal) as server, endpoint(server, retries=0, turn_tokens=7) as model:
        assert [model.complete(TALK, 1).text for _ in range(2)] == ["hello"] * 2
    names = [[n for n in request if n.startswith("max")] for request in server.requests]
    assert names == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]
    assert {request[names[0]] for request, names in zip(server.requests, names, strict=True)} == {7}
    with serving(refusal, refusal) as server, endpoint(server, retries=0) as model:
        with pytest.raises(ModelError, match="HTTP 400"):
            model.complete(TALK, 1)
        assert len(server.requests) == 2


def test_a_refusal_without_a_word_is_told() -> None:
    with serving((404, "")) as server:
        assert "HTTP 404 without a word" in str(fails(server))


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"code": "context_length_exceeded"}}',
        "This model's maximum context length is 4096 tokens.",
        "the request exceeds the available context size",
        "Prompt is too long",
    ],
)
def test_a_conversation_that_is_too_long_is_told_apart(body: str) -> None:
    with serving((400, body)) as server:
        assert type(fails(server)) is ContextError
        assert len(server.requests) == 1
    with serving("context") as server:
        assert type(fails(server)) is ContextError


@pytest.mark.parametrize(
    "body",
    [
        "[]", "null", '"choices"', '{"choices": {}}', '{"choices": [null]}', "[" * 100_000,
        '{"choices": [{"message": null}]}', '{"choices": [{"message": []}]}',
        '{"choices": [{"message": {"content": [1]}}]}', '{"choices": [{"text": "old"}]}', "",
    ],
    ids=lambda body: body[:40],
)  # fmt: skip
def test_what_is_no_chat_completion_is_told(body: str) -> None:
    with serving((200, body)) as server:
        assert "no chat completion came back" in str(fails(server, retries=0))


@pytest.mark.parametrize("usage", ["none", {}, {"prompt_tokens": "7", "completion_tokens": -1}])
def test_usage_that_is_none_is_unknown(usage) -> None:
    with serving(chat("a", usage=usage)) as server:
        assert ask(server) == Completion("a")


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Endpoint("m", section(), f"http://127.0.0.1:{port}", backoff_s=0.01)
    with closing(made), pytest.raises(ModelError, match=r"ConnectError.*\(3 tries\)"):
        made.session(0).complete(TALK)


def test_a_pause_is_as_long_as_the_server_asks_and_not_longer_than_a_minute() -> None:
    made = Endpoint("m", section(), "http://127.0.0.1/v1", backoff_s=1.0)
    assert all(0 <= made._pause(1, 0.0) <= 1 for _ in range(100))
    assert max(made._pause(4, 0.0) for _ in range(200)) > 4
    assert max(made._pause(2000, 0.0) for _ in range(200)) <= 60
    assert made._pause(1, 50.0) == 50.0


@pytest.mark.parametrize(
    ("header", "pause"),
    [("7", 7), ("1.5", 1.5), ("9" * 400, 60), ("-1", 0), ("nan", 0), ("Wed, 21 Oct", 0), ("", 0)],
)
def test_retry_after(header: str, pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(Endpoint, "_pause", lambda self, tries, least: asked.append(least) or 0)
    with serving((429, "busy", "text/plain")) as server:
        server.behaviours[0] = lambda request: (429, "busy", "text/plain")
        handler = server.RequestHandlerClass

        class Asking(handler):
            def end_headers(self) -> None:
                self.send_header("Retry-After", header)
                super().end_headers()

        server.RequestHandlerClass = Asking
        assert ask(server).text == "hello"
    assert asked == [pause]


def test_no_more_are_asked_at_once_than_allowed() -> None:
    together = threading.Barrier(2, timeout=30)  # two come through together, or none does

    def meet(request) -> str:
        together.wait()
        return "ok"

    with serving(*[meet] * 6) as server, endpoint(server, requests=2, timeout_s=60) as made:
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda seed: made.session(seed).complete(TALK), range(6)))
        assert server.most_at_once == 2
    assert [reply.text for reply in replies] == ["hello"] * 6


def test_who_pauses_does_not_keep_others_waiting() -> None:
    """With one slot, a request that waits for half an hour lets another one through."""
    slow = (429, "later", "text/plain")
    with serving() as server, endpoint(server, requests=1) as made:
        server.behaviours = [slow]
        paused = threading.Event()
        made._pause = lambda tries, least: paused.set() or 1800.0
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(made.session(0).complete, TALK)
            assert paused.wait(30)
            assert made.session(1).complete(TALK).text == "hello"
            made.close()
            with pytest.raises(ModelError, match="was ended"):
                first.result()


def test_closing_ends_what_is_waited_for() -> None:
    with serving("hang") as server, endpoint(server, timeout_s=3600) as made:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(made.session(0).complete, TALK)
            while not server.requests:
                assert not waiting.done()
            made.close()
            with pytest.raises(ModelError, match="was ended"):
                waiting.result()
        made.close()
        with pytest.raises(ModelError, match="was ended"):
            made.session(0).complete(TALK)


def test_a_cap_in_dollars_ends_the_run_of_the_model() -> None:
    with serving() as server:
        with endpoint(server, max_usd=0.0005, usd_per_million=(2.0, 10.0)) as made:
            made.session(0).complete(TALK)
            made.session(1).complete(TALK)
            with pytest.raises(ModelError, match=r"cap of \$0\.0005 is used up; raise policy\.max"):
                made.session(2).complete(TALK)
        assert len(server.requests) == 2


def test_a_cap_in_tokens_counts_letters_where_the_server_counts_nothing() -> None:
    with serving(chat("x" * 9, usage=None)) as server:
        with endpoint(server, max_tokens=7) as made:
            assert not made.budget.estimated
            made.session(0).complete(TALK)  # 14 characters asked, 9 said
            assert (made.budget.tokens, made.budget.estimated) == (4 + 3, True)
            with pytest.raises(ModelError, match=r"cap of 7 tokens is used up; raise policy\.max"):
                made.session(0).complete(TALK)
        assert len(server.requests) == 1


def test_a_failed_try_before_the_cap_is_not_tried_beyond_it() -> None:
    with serving("busy") as server:
        with endpoint(server, max_tokens=1) as made:
            made._pause = lambda tries, least: setattr(made.budget, "tokens", 5) or 0.0
            with pytest.raises(ModelError, match="is used up"):
                made.session(0).complete(TALK)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("localhost:8000/v1", "", "no http or https URL"),
        ("ftp://user:secret@host/v1", "", "no http or https URL"),
        ("http://", "", "no http or https URL"),
        ("http://host:port", "", "no http or https URL"),
        ("http://host", "secret key", "OPENAI_API_KEY holds blanks"),
        ("http://host", "secrét", "OPENAI_API_KEY holds blanks"),
        ("", "", "OPENAI_API_KEY is not set"),
    ],
)
def test_a_wrong_setup_is_told_before_anything_is_asked(
    url: str, key: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UsageError, match=message) as caught:
        Endpoint("m", section())
    assert "secr" not in str(caught.value)


def test_a_cap_in_dollars_needs_a_price() -> None:
    with pytest.raises(UsageError, match=r"give policy\.usd_per_million"):
        Endpoint("m", section(max_usd=1), "http://host")


def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://user:secret@host:1")
    with pytest.raises(UsageError, match="variables of proxies") as caught:
        Endpoint("m", section(), "http://host")
    assert "secret" not in str(caught.value)


def test_what_a_url_holds_beside_the_place_is_not_shown() -> None:
    with serving((403, "no")) as server:
        url = server.url.replace("//", "//user:hidden@") + "/?token=hidden"
        made = Endpoint("m", section(), url, backoff_s=0.01)
        with closing(made), pytest.raises(ModelError, match="HTTP 403") as caught:
            made.session(0).complete(TALK)
    assert str(caught.value).startswith(f"POST {server.url}/chat/completions (model m)")
    assert "hidden" not in str(caught.value)


def test_a_key_with_a_line_end_is_sent_without_it() -> None:
    with serving() as server:
        with closing(Endpoint("m", section(), server.url, f"{KEY}\n")) as made:
            made.session(None).complete(TALK)
        assert server.keys == [f"Bearer {KEY}"]
        assert "seed" not in server.requests[0]


def test_the_key_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with serving("busy", (401, KEY)) as server:
        fails(server)
    assert "429" in caplog.text, "the client logs"
    assert KEY not in caplog.text
