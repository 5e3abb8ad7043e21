"""The process that becomes the agent's program: confines itself for good, then runs the script.

What was imported before the fork is there at once; all else is as in a fresh interpreter.
"""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sandmle.sandbox.inside import interpreter, landlock, linux, places, rootfs, seccomp
from sandmle.sandbox.inside.wire import Message, Wire, close_others

_OPEN_FILES = 1024
_INSIDE_ID = 1000
# of its own entries in /proc, where there is no /proc of its own
_OWN = ("cgroup", "cmdline", "fd", "limits", "maps", "stat", "statm", "status")
_ABOUT_MACHINE = (
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/sys/devices/system/cpu",
)


def main(
    wire: Wire, config: Message, network: bool, namespaces: Sequence[tuple[int, int]]
) -> NoReturn:
    """Enter the namespaces, wait for a script, confine this process, run it."""
    try:
        close_others(wire.fileno(), *(handle for handle, _ in namespaces))
        for handle, kind in namespaces:
            linux.setns(handle, kind)
        rules = _rules(config, network)
        if not config["cold"]:
            interpreter.freshen()
        _set_environment(config, network)
        request, descriptors = wire.receive()
        folders = _folders(config, request)
        script = f"{folders['work']}/{places.SCRIPT}"
        source = Path(f"/proc/self/fd/{descriptors[0]}").read_bytes()
        _attach(descriptors[1], descriptors[2], wire, rules)
        listener = _confine(config, request, folders, rules)
        _finish_environment(config, request, folders)
        if listener is not None:  # who holds it decides on system calls: none of the program's
            wire.send({}, [listener])
            os.close(listener)
    except EOFError:
        os._exit(0)
    except BaseException:
        wire.send({"infra": traceback.format_exc()})
        os._exit(1)
    wire.close()  # the sign that it runs; from here on nothing is ours
    if config["cold"]:
        os.execv(sys.executable, [sys.executable, script])
    interpreter.run(source, script)


def _folders(config: Message, request: Message) -> dict[str, str]:
    if config["namespaces"]:
        return {"work": rootfs.WORK, "tmp": rootfs.TEMPORARY, "home": rootfs.HOME}
    root = f"{config['folder']}/workspaces/{request['name']}"
    return {part: f"{root}/{part}" for part in places.PARTS}


def _rules(config: Message, network: bool) -> landlock.Ruleset:
    """Allow what every program may do; made before there is one."""
    rules = landlock.Ruleset(tcp=config["namespaces"] or network)
    rules.write(rootfs.WRITABLE_DEVICES)
    if config["namespaces"]:
        rules.read(["/"])
    else:
        rules.read([*rootfs.SYSTEM, *config["readable"], *rootfs.RANDOM_DEVICES])
        rules.read(f"/proc/{os.getpid()}/{name}" for name in _OWN)
        rules.read(_ABOUT_MACHINE)
        rules.list(config["listable"])
    return rules


def _attach(out: int, err: int, wire: Wire, rules: landlock.Ruleset) -> None:
    """Connect the standard streams; no other descriptor stays open, and there is no terminal."""
    null = os.open("/dev/null", os.O_RDONLY)
    for place, descriptor in enumerate((null, out, err)):
        os.dup2(descriptor, place)
    close_others(wire.fileno(), rules.fileno())
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _confine(
    config: Message, request: Message, folders: dict[str, str], rules: landlock.Ruleset
) -> int | None:
    """Take away whatever the program shall not have; the order matters.

    Returns the descriptor that hears of refused system calls, if there is one.
    """
    Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, this goes first
    if config["switch_user"]:
        linux.drop_bounding_set()
        owner = os.stat(folders["work"]).st_uid
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # it may look at itself
    elif config["user_namespace"]:
        # of its own, so that its processes are counted apart from all others of this user
        linux.unshare(linux.NEWUSER)
        linux.map_ids(_INSIDE_ID, _INSIDE_ID, _INSIDE_ID)
        linux.drop_bounding_set()
    _limit(config, request)
    os.umask(0o022)
    os.chdir(folders["work"])
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    rules.write(folders.values())
    if config["namespaces"]:
        rules.write([rootfs.SHARED_MEMORY])
    if request["gpus"]:
        nodes = [*rootfs.GPU_CONTROL, *(f"nvidia{number}" for number in request["gpus"])]
        rules.write(f"/dev/{node}" for node in nodes)
    rules.enforce()
    if config["filters"]:
        return seccomp.install(*config["filters"][request["network"]])
    return None


def _limit(config: Message, request: Message) -> None:
    born_with = 0 if config["cold"] else config["base"]["data"]
    for name, wanted in (
        # data, not address space: importing a numeric library reserves far more than it uses
        (resource.RLIMIT_DATA, born_with + request["memory"]),
        (resource.RLIMIT_FSIZE, request["disk"]),
        (resource.RLIMIT_CPU, request["cpu_s"]),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
        (12, 0),  # RLIMIT_MSGQUEUE, which the module does not name
    ):
        hard = resource.getrlimit(name)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(name, (limit, limit))


def _set_environment(config: Message, network: bool) -> None:
    os.environ.clear()
    os.environ.update(config["env"])
    if not network:
        os.environ.update(config["offline"])
    os.environ.update(USER="agent", LOGNAME="agent")


def _finish_environment(config: Message, request: Message, folders: dict[str, str]) -> None:
    os.environ.update(HOME=folders["home"], TMPDIR=folders["tmp"], PWD=folders["work"])
    gpus = [config["gpus"].get(str(number), str(number)) for number in request["gpus"]]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
