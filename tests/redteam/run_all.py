"""Plays every attack in every mode that works here, and prints what held where.

    python tests/redteam/run_all.py [--only PART] [--require MODE,MODE] [--more]

Any user may run it. Root runs it in root's modes, then as an ordinary user who is made for it and
removed at the end, and then both again while the kernel refuses namespaces, as in many containers.
It fails if an attack held or succeeded against what the mode promises, if another mode was chosen
than the situation allows, if a process is left, or if a mode that `--require` names did not run.
"""

import argparse
import ctypes
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_MODE_S = 900
_PROCESSES = str(min(2, os.cpu_count() or 1))
_LIBC = ctypes.CDLL(None, use_errno=True)


class Situation(NamedTuple):
    """Who runs the harness, whether namespaces are refused, and what `ns` must choose then.

    `more` modes differ from those that are played elsewhere in no promise, or are weaker than the
    best; `part` limits the attacks where all of them are played elsewhere.
    """

    name: str
    modes: tuple[str, ...]
    more: tuple[str, ...] = ()
    ordinary: bool = False
    refused: bool = False
    chosen: str = ""
    part: str = ""


class Row(NamedTuple):
    """One line of the table."""

    situation: str
    mode: str
    verdict: str
    failed: bool
    ran: str = ""


def main() -> int:
    """Run all situations and print the table."""
    options = _options()
    if options.enter:
        _enter(json.loads(options.enter), options.command)
    rows: list[Row] = []
    with _ordinary_user() as user:
        for situation in _situations():
            if options.only in situation.name:
                more = situation.more if options.more else ()
                rows += _play(situation._replace(modes=situation.modes + more), user)
    ran = {row.ran for row in rows}
    for mode in filter(None, options.require.split(",")):
        if mode not in ran:
            rows.append(Row("required", mode, "did not run", failed=True))
    print()
    for row in rows:
        print(f"{row.situation:32} {row.mode:14} {row.verdict}{'  FAILED' if row.failed else ''}")
    return int(any(row.failed for row in rows) or not ran - {""})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="situations whose name contains this")
    parser.add_argument("--require", default="", help="modes that must have run, with commas")
    parser.add_argument("--more", action="store_true", help="modes like those played as well")
    parser.add_argument("--enter", default="", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def _situations() -> list[Situation]:
    if os.getuid():
        return [
            Situation("as this user", ("ns-user",), ("cold",)),
            Situation("namespaces refused", ("ns",), ("cold",), refused=True, chosen="landlock"),
        ]
    return [
        Situation("as root", ("ns-root",), ("ns-user", "uid+landlock", "cold")),
        Situation("ordinary user", ("ns-user", "landlock"), ("cold",), ordinary=True),
        Situation(
            "root, namespaces refused", ("ns",), ("cold",), refused=True, chosen="uid+landlock"
        ),
        Situation(
            "ordinary user, namespaces refused",
            ("ns",),
            ordinary=True,
            refused=True,
            chosen="landlock",
            part="answer-by-its-path or leftovers",
        ),
    ]


@contextmanager
def _ordinary_user() -> Iterator[int]:
    """Make a user for root's runs; anybody else needs none."""
    if os.getuid():
        yield os.getuid()
        return
    name = f"redteam-{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/false", name], check=True)
    try:
        done = subprocess.run(["id", "-u", name], check=True, capture_output=True, text=True)
        yield int(done.stdout)
    finally:
        subprocess.run(["userdel", name], check=False)


def _play(situation: Situation, user: int) -> list[Row]:
    """Run the suite in each mode of a situation."""
    rows = []
    uid = user if situation.ordinary else os.getuid()
    with tempfile.TemporaryDirectory(prefix="rt-all-") as folder:
        os.chown(folder, uid, -1)
        Path(folder).chmod(0o755)
        for mode in situation.modes:
            why = _refusal(situation, uid, mode, folder)
            if why:
                failed = bool(situation.chosen)
                rows.append(Row(situation.name, mode, f"refused: {why[:200]}", failed))
                continue
            print(f"--- {situation.name}: {mode}", flush=True)
            rows.append(_suite(situation, uid, mode, folder))
            left = _processes_of(uid) if situation.ordinary else []
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if left:
                rows.append(Row(situation.name, mode, f"left processes {left}", failed=True))
    return rows


def _refusal(situation: Situation, uid: int, mode: str, folder: str) -> str:
    """Say why a mode cannot work there; nothing if it can."""
    code = f"from redteam.arena import refusal; print(refusal({mode!r}), end='')"
    done = subprocess.run(
        _command(situation, uid, [sys.executable, "-c", code]),
        env=_environment(folder, {"PYTHONPATH": str(ROOT / "tests")}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_MODE_S,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def _suite(situation: Situation, uid: int, mode: str, folder: str) -> Row:
    """Run the suite in one mode and read its report."""
    report = Path(folder, "report.jsonl")
    report.unlink(missing_ok=True)
    suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    suite += ["-n", _PROCESSES, "-k", situation.part or "test_redteam"]
    variables = {"SANDMLE_REDTEAM_MODE": mode, "SANDMLE_REDTEAM_REPORT": str(report)}
    started = time.monotonic()
    process = subprocess.Popen(
        _command(situation, uid, [*suite, str(HERE / "test_redteam.py")]),
        env=_environment(folder, variables),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        code = process.wait(_MODE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    lines = [json.loads(line) for line in _lines(report)]
    isolation: dict[str, Any] = next((x["isolation"] for x in lines if "isolation" in x), {})
    played = [line for line in lines if "name" in line]
    promised = [line for line in played if line["promised"]]
    held = sum(not line["evidence"] for line in promised)
    gaps = [line for line in played if not line["promised"]]
    wrong = len(promised) - held + sum(not line["evidence"] for line in gaps)
    ran = str(isolation.get("mode", "")).removeprefix("cold, ")
    verdict = f"{held}/{len(promised)} held"
    verdict += f", {len(gaps)} declared gaps" if gaps else ""
    verdict += f", {wrong} not as promised" if wrong else ""
    verdict += f" ({time.monotonic() - started:.0f} s)"
    label = mode if ran == mode else f"{mode}: {ran}"
    if situation.chosen and ran != situation.chosen:
        verdict += f", expected {situation.chosen}"
        wrong += 1
    counts = "cold" if mode == "cold" else ran
    return Row(situation.name, label, verdict, bool(code or wrong), counts)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _environment(folder: str, more: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SANDMLE_")}
    own = {"TMPDIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **own, **more}


def _processes_of(uid: int) -> list[int]:
    """Return the processes of a user, after a moment in which they may still end."""
    found: list[int] = []
    for _ in range(40):
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if folder.stat().st_uid == uid and " Z " not in (folder / "stat").read_text():
                    found.append(int(folder.name))
        if not found:
            break
        time.sleep(0.1)
    return found


# --- entering a situation: this file starts itself, becomes what it shall, then executes the suite


def _command(situation: Situation, uid: int, command: list[str]) -> list[str]:
    how = {"uid": uid, "refused": situation.refused}
    return [sys.executable, str(HERE / "run_all.py"), "--enter", json.dumps(how), "--", *command]


def _enter(how: dict[str, Any], command: list[str]) -> None:
    root = os.getuid() == 0
    if root:
        _open_the_way()
    if how["refused"]:
        _refuse_namespaces(privileged=root)
    if how["uid"] != os.getuid():
        os.setgroups([])
        os.setresgid(how["uid"], how["uid"], how["uid"])
        os.setresuid(how["uid"], how["uid"], how["uid"])
    os.execv(command[0], command)


def _open_the_way() -> None:
    """Let other users reach the interpreter and these tests, in a mount namespace of our own.

    A folder that only root may enter is covered by an empty one with just those in it.
    """
    needed = [os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, str(ROOT))]
    blocked: dict[str, list[str]] = {}
    for path in needed:
        for folder in [*reversed(Path(path).parents), Path(path)]:
            if not folder.stat().st_mode & 0o001:
                blocked.setdefault(str(folder), []).append(path)
                break
    if not blocked:
        return
    new_namespace, bind, recursive, private = 0x20000, 4096, 16384, 1 << 18
    if _LIBC.unshare(new_namespace):
        print(f"other users cannot reach {', '.join(blocked)}", file=sys.stderr)
        return
    _mount("none", "/", "", recursive | private, "")
    for outer, paths in blocked.items():
        handles = [os.open(path, os.O_PATH) for path in paths]
        _mount("none", outer, "tmpfs", 0, "mode=755")
        for handle, path in zip(handles, paths, strict=True):
            Path(path).mkdir(parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{handle}", path, "", bind | recursive, "")
            os.close(handle)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [word.encode() for word in (source, target, kind, options)]
    if _LIBC.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]):
        raise OSError(ctypes.get_errno(), f"mount on {target}")


def _refuse_namespaces(privileged: bool) -> None:
    """Let the kernel refuse what makes and enters namespaces and mounts, as Docker does."""
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    calls = {
        "unshare": (272, 97),
        "setns": (308, 268),
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "mount_setattr": (442, 442),
    }
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    allow, refuse, absent = 0x7FFF0000, 0x00050001, 0x00050026
    code = [(load, 0, 0, 0)]
    for numbers in calls.values():
        code += [(equal, 0, 1, numbers[column]), (give, 0, 0, refuse)]
    code += [
        (equal, 0, 1, 435),  # clone3, whose flags a filter cannot see
        (give, 0, 0, absent),
        (equal, 0, 3, (56, 220)[column]),  # clone
        (load, 0, 0, 16),
        (any_bit, 0, 1, 0x7E020000),
        (give, 0, 0, refuse),
        (give, 0, 0, allow),
    ]
    data = b"".join(struct.pack("HBBI", *one) for one in code)
    buffer = ctypes.create_string_buffer(data, len(data))
    header = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    set_no_new_privileges, set_filter = 38, 22
    if not privileged:
        _LIBC.prctl(set_no_new_privileges, 1, 0, 0, 0)
    if _LIBC.prctl(set_filter, 2, ctypes.create_string_buffer(header, len(header)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("the confined modes need Linux")
    sys.exit(main())
