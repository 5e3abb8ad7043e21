"""Attacks through what is printed: floods, control characters, forged ends."""

import json

from redteam.arena import Scene, peak_mb
from redteam.attack import QUICK, Attack, Judge, Play, ends
from sandmle.types import ExecResult

_NOISY = QUICK.model_copy(update={"wall_s": 3.0})


def _bounded(*statuses: str, says: str = "", complains: str = "") -> Judge:
    """The result is small, the harness has not grown, and the end is told rightly."""

    def judge(result: ExecResult, scene: Scene) -> str:
        faults = [ends(*statuses, says=says, complains=complains)(result, scene)]
        size = len(result.stdout.encode()) + len(result.stderr.encode())
        if size > 4 * QUICK.output_bytes:
            faults.append(f"{size} bytes of output")
        if not result.truncated:
            faults.append("not marked as truncated")
        return "; ".join(filter(None, faults))

    return judge


def _flood(code: str) -> Play:
    def play(scene: Scene) -> ExecResult:
        before = peak_mb()
        result = scene.run(code)
        grown = peak_mb() - before
        scene.expect(grown < 150, f"the harness grew by {grown:.0f} MB")
        return result

    return play


def _is_text(result: ExecResult, scene: Scene) -> str:
    """Whatever was printed can be stored and read back."""
    written = result.model_dump_json()
    faults = []
    if ExecResult.model_validate_json(written) != result:
        faults.append("it is another result when it is read back")
    try:
        (result.stdout + result.stderr).encode("utf-8")
        json.loads(written)
    except ValueError as error:
        faults.append(str(error))
    return "; ".join(filter(None, [*faults, ends("ok", says="the end of it")(result, scene)]))


ATTACKS = [
    Attack(
        name="flood",
        tries="Prints gigabytes to both streams.",
        must="Both ends are kept, the rest is dropped, and the harness does not grow.",
        limits=_NOISY,
        code=_flood("""
            print("begun", flush=True)
            block = b"x" * (1 << 20)
            for _ in range(3000):
                os.write(1, block)
                os.write(2, block)
        """),
        judge=_bounded("ok", "timeout", "killed", "error", says="begun"),
    ),
    Attack(
        name="flood-of-many",
        tries="Prints from twenty processes at once, and goes on after its end.",
        must="The result comes in time, and is bounded.",
        limits=_NOISY,
        code=_flood("""
            print("begun", flush=True)
            for _ in range(20):
                if os.fork() == 0:
                    signal.alarm(20)
                    while True:
                        os.write(1, b"y" * 65536)
                        os.write(2, b"z" * 65536)
            time.sleep(40)
        """),
        judge=_bounded("timeout", "killed", "error"),
    ),
    Attack(
        name="progress-bars",
        tries="Redraws a progress bar 50,000 times, then fails (FR-29).",
        must="The error at the end is kept.",
        code="""
            for number in range(50_000):
                sys.stderr.write(f"\\r {number / 500:.0f}%|####      |")
            raise ValueError("bad column")
        """,
        judge=_bounded("error", complains="bad column"),
    ),
    Attack(
        name="one-long-line",
        tries="Prints lines of a megabyte each, without a line feed, until its time is up.",
        must="The output is bounded, and so is the harness (FR-29).",
        limits=_NOISY.model_copy(update={"wall_s": 2.0}),
        code=_flood("""
            while True:
                print("x" * 10**6, end="\\r")
        """),
        judge=_bounded("timeout", "killed", "error"),
    ),
    Attack(
        name="control-characters",
        tries="Prints escapes for terminals, NUL, backspaces, bells and directions of writing.",
        must="The result is text that can be stored and read back.",
        code="""
            print("\\x1b]0;title\\x07\\x1b[2J\\x1b[31m\\x1bc\\0\\b\\b\\r\\x9b\\u202e\\u2066\\ufeff\\x7f")
            print("\\x1b]52;c;cm0gLXJmIC8=\\x07\\x1bP+q\\x1b\\\\")
            print("".join(map(chr, range(32))))
            print("the end of it")
        """,
        judge=_is_text,
    ),
    Attack(
        name="broken-utf-8",
        tries="Prints bytes that are no UTF-8: surrogates, cut and overlong sequences.",
        must="The result is text that can be stored and read back.",
        code="""
            out = sys.stdout.buffer
            for data in (b"\\xff\\xfe\\x00", b"\\xed\\xa0\\x80\\xed\\xb0\\x80", b"\\xc0\\x80",
                         b"\\xf4\\x90\\x80\\x80", b"\\xe2\\x82", b"\\xf0\\x9f\\x98", b"\\x80" * 9):
                out.write(data + b"\\n")
                out.flush()
            try:
                print("\\udc80\\ud83d")
            except UnicodeEncodeError as fault:
                print("refused")
            out.write(b"the end of it\\n")
            out.flush()
            os.write(2, bytes(range(256)) * 3)
        """,
        judge=_is_text,
    ),
    Attack(
        name="cut-within-characters",
        tries="Prints more than is kept, in characters of four bytes, shifted by one.",
        must="Nothing is cut within a character.",
        code="""
            sys.stdout.buffer.write(b"x" + "\\U0001f600".encode() * 100_000)
        """,
        judge=lambda result, scene: (
            "a broken character" if "\ufffd" in result.stdout else _bounded("ok")(result, scene)
        ),
    ),
    Attack(
        name="output-after-death",
        tries="Prints without line feeds or flushing, and is killed at once.",
        must="What was written to the descriptor is there.",
        code="""
            os.write(1, b"written")
            os.write(2, b"complained")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        judge=ends("killed", signal=9, says="written", complains="complained"),
    ),
    Attack(
        name="resized-pipes",
        tries="Shrinks, fills and puts its output pipes into other modes.",
        must="The result comes in time.",
        code="""
            import fcntl
            for number in (0, 1, 2):
                for command, value in ((1031, 4096), (4, os.O_NONBLOCK), (4, os.O_ASYNC), (8, 1),
                                       (4, 0)):
                    anyway(lambda: fcntl.fcntl(number, command, value))
            print("written", flush=True)
        """,
        judge=ends("ok", says="written"),
    ),
    Attack(
        name="reading-its-output-back",
        tries="Opens its own output for reading, to swallow or to forge what others see.",
        must="It finds there nothing but its own words.",
        code="""
            print("written", flush=True)
            for number in (1, 2):
                def back():
                    handle = os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
                    try:
                        return os.read(handle, 1 << 16)
                    except BlockingIOError:
                        return b""
                search(f"{number}", back)
            print("written", flush=True)
        """,
        judge=ends("ok", says="written"),
    ),
]
