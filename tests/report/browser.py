"""A real browser for tests: Chromium without a window, driven through a pipe.

It speaks the DevTools protocol over two file descriptors, so it needs no package and no port.
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)
# the browser's own errands would look like requests of the page
_QUIET = [
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """One tab; `problems` has what the console and the network complained about."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest, self._number, self._session = b"", 0, ""
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until its scripts have run."""
        self._ask("Page.navigate", url="about:blank")
        self.requests.clear()
        self._ask("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, expression: str) -> Any:
        """Return what an expression is worth on the page; a promise is waited for."""
        answer = self._ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true; the test's own time limit is the only one."""
        test = f"const t = () => ({expression}) ? done(1) : setTimeout(t, 20); t();"
        asked = f"new Promise(done => {{ {test} }})"
        while True:
            answer = self._ask(
                "Runtime.evaluate", expression=asked, returnByValue=True, awaitPromise=True
            )
            if answer.get("result", {}).get("value") == 1:
                return

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def look(self, width: int, height: int, dark: bool = False, phone: bool = False) -> None:
        """Set the size of the window and the theme that the person prefers."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[theme])

    def screenshot(self, path: Path) -> None:
        """Write what is to be seen as PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))

    def _ask(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            # a page that is just being replaced cannot be asked
            assert method == "Runtime.evaluate", answer["error"]
        return answer.get("result", {})

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _note(self, event: dict[str, Any]) -> None:
        what, said = event.get("method"), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.problems.append(str(said["exceptionDetails"]))
        elif what == "Runtime.consoleAPICalled":
            self.problems.append(str(said["args"]))
        elif what == "Log.entryAdded":
            self.problems.append(said["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])


# the browser wants its pipe at descriptors 3 and 4; the ends given are never these
_PLACED = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser, and end it with everything it started."""
    assert FOUND is not None
    to_read, write = _pipe()
    read, to_write = _pipe()
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        started = subprocess.Popen(
            [sys.executable, "-c", _PLACED, str(to_read), str(to_write), FOUND, *_QUIET, *as_root,
             f"--user-data-dir={profile}"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        try:
            yield Browser(write, read)
        finally:
            os.close(write)  # an end of its input is an order to quit
            started.wait()
            os.close(read)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends have numbers above nine."""
    ends = os.pipe()
    above = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return above[0], above[1]
