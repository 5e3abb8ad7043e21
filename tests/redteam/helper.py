"""A process like the harness, which programs in a sandbox try to reach.

Run as `python -I helper.py SECRET ANSWERS FOLDER`. It holds the secret in its arguments, its
environment, its memory and an open descriptor, answers everybody who connects with it, and writes
every visit to `FOLDER/visitors.log`. It ends when its standard input does.
"""

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Open everything, say where, and wait for the end."""
    secret, answers, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    held = open(answers, "rb")  # noqa: PTH123, SIM115
    deleted = (folder / "deleted.txt").open("w+")
    deleted.write(secret)
    deleted.flush()
    (folder / "deleted.txt").unlink()
    log = (folder / "visitors.log").open("a")

    def visited(door: str) -> None:
        log.write(f"{door}\n")
        log.flush()

    def welcome(door: str, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            visited(door)
            with connection, suppress(OSError):
                connection.sendall(secret.encode())

    def echo(door: str, bound: socket.socket) -> None:
        while True:
            _, sender = bound.recvfrom(1000)
            visited(door)
            with suppress(OSError):
                bound.sendto(secret.encode(), sender)

    abstract = f"\0redteam-{os.getpid()}"
    paths = {name: str(folder / f"{name}.sock") for name in ("stream", "datagram")}
    doors: dict[str, tuple[int, int, object]] = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "tcp6": (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, abstract),
        "abstract-datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, f"{abstract}-d"),
        "stream": (socket.AF_UNIX, socket.SOCK_STREAM, paths["stream"]),
        "datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, paths["datagram"]),
    }
    ports: dict[str, int] = {}
    for door, (family, sort, address) in doors.items():
        try:
            made = socket.socket(family, sort)
            made.bind(address)  # type: ignore[arg-type]
        except OSError:
            if door == "tcp6":  # a machine without IPv6
                continue
            raise
        if family in (socket.AF_INET, socket.AF_INET6):
            ports[door] = made.getsockname()[1]
        serve = echo
        if sort == socket.SOCK_STREAM:
            made.listen(16)
            serve = welcome
        threading.Thread(target=serve, args=(door, made), daemon=True).start()
    for path in paths.values():  # like the sockets of many daemons: everybody may connect
        Path(path).chmod(0o777)
    print(json.dumps({"ports": ports, "abstract": abstract, **paths}), flush=True)
    sys.stdin.read()
    held.close()


if __name__ == "__main__":
    main()
