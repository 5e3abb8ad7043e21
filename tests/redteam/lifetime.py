"""Attacks on the end: what lives on, what cannot be stopped, and what stops others."""

import time

from redteam.arena import Scene
from redteam.attack import QUICK, SHORT, Attack, Play, ends, gains, no_table
from sandmle.types import ExecResult

_SLEEP = "import time; time.sleep(40)  # {mark}"
# before a program signals what it should not reach: whether it could, with a signal that is none
_GUARD = """
    for pid in (HOST["helper"], HOST["harness"]):
        attempt(f"signal {pid}", lambda: os.kill(pid, 0))
    reaches = False
    try:
        os.kill(HOST["helper"], 0)
        reaches = True
    except OSError:
        pass
    if reaches:
        sys.exit(0)
"""


def _beating(code: str) -> Play:
    """Daemons write a heartbeat; it must have stopped when the result is there."""

    def play(scene: Scene) -> ExecResult:
        result = scene.run(code)
        first = scene.read("beat")
        time.sleep(0.4)
        second = scene.read("beat")
        scene.expect(isinstance(first, bytes), f"no heartbeat: {first}")
        same = first == second if isinstance(first, bytes) else True
        scene.expect(same, "something still writes into the workspace")
        return result

    return play


def _five_timeouts(scene: Scene) -> ExecResult:
    """FR-22: what timed out must not run beside what comes later."""
    for _ in range(5):
        result = scene.run("""
            import subprocess
            subprocess.Popen([sys.executable, "-c", f"while True: pass  # {HOST['mark']}"])
            while True:
                pass
        """)
        scene.expect(result.status == "timeout", f"status {result.status}")
        if scene.isolation.kill_all or scene.attack.needs == "kill_all":
            scene.expect(not scene.survivors(), f"running after a timeout: {scene.survivors()}")
    return scene.run("""
        import numpy as np
        started = time.monotonic()
        np.linalg.svd(np.ones((200, 200)))
        print("took", time.monotonic() - started)
    """)


ATTACKS = [
    Attack(
        name="daemon",
        tries="Leaves a daemon of its own session behind, started by a parent that is dead.",
        must="It is dead when the result is there.",
        needs="kill_all",
        code=f"""
            daemon(lambda: os.execv(sys.executable, [sys.executable, "-c",
                                    {_SLEEP!r}.format(mark=HOST["mark"])]))
            time.sleep(0.3)
        """,
    ),
    Attack(
        name="daemon-and-timeout",
        tries="Leaves a daemon that ignores every signal, and then never ends.",
        must="Both are dead after the time limit.",
        needs="kill_all",
        limits=SHORT,
        code=f"""
            for number in set(range(1, 65)) - {{signal.SIGCHLD}}:
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            daemon(lambda: os.execv(sys.executable, [sys.executable, "-c",
                                    {_SLEEP!r}.format(mark=HOST["mark"])]))
            print("begun", flush=True)
            while True:
                pass
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="many-daemons",
        tries="Leaves twenty daemons, each in a session and a process group of its own.",
        must="All are dead when the result is there.",
        needs="kill_all",
        code="""
            for number in range(20):
                daemon(lambda: time.sleep(40))
        """,
    ),
    Attack(
        name="hopping-daemons",
        tries="Leaves processes that fork and exit all the time, so that no number stays theirs.",
        must="None outruns the end: their heartbeat stops.",
        needs="kill_all",
        code=_beating("""
            def hop():
                until = time.monotonic() + 20
                beat = os.open("beat", os.O_WRONLY | os.O_CREAT)
                while time.monotonic() < until:
                    try:
                        if os.fork():
                            os._exit(0)
                        os.setsid()
                    except OSError:
                        pass
                    os.pwrite(beat, str(time.time_ns()).encode(), 0)
            for _ in range(4):
                daemon(hop)
            time.sleep(0.5)
        """),
    ),
    Attack(
        name="threads-that-go-on",
        tries="Starts threads that never end, and ends.",
        must="The time limit ends it.",
        limits=SHORT,
        code="""
            import threading
            for _ in range(5):
                threading.Thread(target=lambda: time.sleep(40)).start()
            print("begun", flush=True)
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="loop-in-c",
        tries="Stays in a loop inside the C library's regular expressions, ignoring interrupts.",
        must="The time limit ends it.",
        limits=SHORT,
        code="""
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
                signal.signal(number, signal.SIG_IGN)
            print("begun", flush=True)
            re.match(r"(a+)+$", "a" * 60 + "b")
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="stopped",
        tries="Stops itself, so that it neither runs nor ends.",
        must="The time limit ends it.",
        limits=SHORT,
        code="""
            print("begun", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="killing-everyone",
        tries="Kills its parent, process 1, every process that it can see, and then all (-1).",
        must="Nothing outside is hit; the sandbox goes on.",
        needs="signals",
        reckless=True,
        code=_GUARD
        + """
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in others():
            anyway(lambda: os.kill(pid, number))
    pid = os.fork()
    if pid == 0:
        os.setsid()
        anyway(lambda: os.kill(-1, signal.SIGKILL))
        os._exit(0)
    os.waitpid(pid, 0)
""",
        judge=gains,
    ),
    Attack(
        name="stopping-everyone",
        tries="Stops its parent, process 1 and every process that it can see.",
        must="Nothing outside is hit, and the result comes in time.",
        needs="signals",
        reckless=True,
        limits=SHORT,
        code=_GUARD
        + """
    for pid in others():
        anyway(lambda: os.kill(pid, signal.SIGSTOP))
    pid = os.fork()
    if pid == 0:
        os.setsid()
        anyway(lambda: os.kill(-1, signal.SIGSTOP))
        os._exit(0)
    os.waitpid(pid, 0)
""",
        judge=gains,
    ),
    Attack(
        name="signalling-the-harness",
        tries="Signals the harness and the helper by number, by group, by thread and by handle.",
        must="No signal leaves the sandbox.",
        needs="signals",
        skip=no_table,
        code="""
            for pid in (HOST["helper"], HOST["harness"]):
                attempt(f"kill {pid}", lambda: os.kill(pid, 0))
                attempt(f"group of {pid}", lambda: os.killpg(pid, 0))
                attempt(f"thread of {pid}", lambda: checked(LIBC.tgkill(pid, pid, 0)))
                def by_handle():
                    return call("pidfd_send_signal", call("pidfd_open", pid, 0), 0, None, 0)
                attempt(f"handle of {pid}", by_handle)
        """,
    ),
    Attack(
        name="shell-loop",
        tries="Becomes a shell that loops.",
        must="The time limit ends it.",
        limits=SHORT,
        code="""
            print("begun", flush=True)
            os.execv("/bin/sh", ["sh", "-c", "while :; do :; done"])
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="silent-loop",
        tries="Closes standard output and error, and goes on.",
        must="Closed output is not taken for the end.",
        limits=SHORT,
        code="""
            print("begun", flush=True)
            os.close(1)
            os.close(2)
            time.sleep(40)
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="held-pipe",
        tries="Ends while a daemon of another session holds its output open and writes to it.",
        must="The result comes when the program ends, with its own output (FR-21).",
        code="""
            def chatter():
                while True:
                    os.write(1, b"more\\n")
                    time.sleep(0.01)
            daemon(chatter)
            time.sleep(0.2)
            print("done", flush=True)
            os._exit(0)
        """,
        judge=ends("ok", says="done"),
    ),
    Attack(
        name="closed-descriptors",
        tries="Closes every descriptor and ends, then the same without ending well.",
        must="How it ended is known all the same.",
        code="""
            print("begun", flush=True)
            os.closerange(0, 4096)
            os._exit(4)
        """,
        judge=ends("error", exit_code=4, says="begun"),
    ),
    Attack(
        name="replaced-exits",
        tries="Replaces the functions that end a program, and ends.",
        must="The program ends, and the sandbox notices.",
        code="""
            import threading
            os._exit = sys.exit = lambda code=0: None
            threading._shutdown = lambda: 1 / 0
            sys.excepthook = lambda *a: None
            sys.stdout.flush = None
            raise SystemExit(5)
        """,
        judge=ends("ok", "error"),
    ),
    Attack(
        name="endless-exit",
        tries="Loops in an exit handler, after the program has ended.",
        must="The time limit ends it.",
        limits=SHORT,
        code="""
            import atexit
            atexit.register(lambda: time.sleep(40))
            print("begun", flush=True)
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="traced-by-its-parent",
        tries="Makes its parent its tracer, so that waiting for it returns before it ends.",
        must="A stop is not taken for the end, and the time limit holds.",
        limits=SHORT,
        skip=no_table,
        code="""
            anyway(lambda: call("ptrace", 0, 0, 0, 0))
            print("begun", flush=True)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.2)
            os._exit(7)
        """,
        judge=ends("error", "timeout", says="begun"),
    ),
    Attack(
        name="signals-of-death",
        tries="Sends itself every signal that stops, continues or is caught by a supervisor.",
        must="The result tells the last of them.",
        code="""
            for number in (signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT, signal.SIGURG):
                os.kill(os.getpid(), number)
            os.killpg(0, signal.SIGWINCH)
            print("begun", flush=True)
            os.killpg(0, signal.SIGKILL)
        """,
        judge=ends("killed", signal=9, says="begun"),
    ),
    Attack(
        name="orphans-in-a-row",
        tries="Starts a chain of processes, each of which outlives its parent.",
        must="The last of them is dead when the result is there.",
        needs="kill_all",
        code=_beating("""
            def chain(depth):
                if depth and os.fork():
                    time.sleep(0.02)
                    os._exit(0)
                if depth:
                    os.setsid()
                    chain(depth - 1)
                beat = os.open("beat", os.O_WRONLY | os.O_CREAT)
                while True:
                    os.pwrite(beat, str(time.time_ns()).encode(), 0)
                    time.sleep(0.01)
            daemon(lambda: chain(15))
            time.sleep(0.7)
        """),
    ),
    Attack(
        name="its-own-reaper",
        tries="Makes a process of its own the reaper of orphans, and lets that outlive it.",
        must="What gathers below it is dead too.",
        needs="kill_all",
        code="""
            def reap():
                LIBC.prctl(36, 1, 0, 0, 0)
                for _ in range(5):
                    daemon(lambda: time.sleep(40))
                time.sleep(40)
            daemon(reap)
            time.sleep(0.3)
        """,
    ),
    Attack(
        name="five-timeouts",
        tries="Times out five times with a busy child, then needs the processor (FR-22).",
        must="Nothing of the earlier programs runs beside the last.",
        limits=SHORT.model_copy(update={"wall_s": 1.0}),
        code=_five_timeouts,
        judge=ends("ok", says="took"),
    ),
    Attack(
        name="ptraced-children",
        tries="Keeps children stopped under ptrace while it ends.",
        must="They are dead when the result is there.",
        code="""
            for _ in range(3):
                if os.fork() == 0:
                    signal.alarm(40)
                    LIBC.ptrace(0, 0, 0, 0)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    time.sleep(40)
            time.sleep(0.2)
        """,
        limits=QUICK,
    ),
]
