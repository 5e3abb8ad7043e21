"""The root file system of a sandbox in namespaces: the interpreter and little else.

It is built once, from read-only binds, and every execution gets a private view of it. What is not
bound does not exist inside.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sandmle.sandbox.inside import linux, places
from sandmle.sandbox.inside.wire import Message

WORK, HOME, TEMPORARY, SHARED_MEMORY = "/sandbox", "/home/agent", "/tmp", "/dev/shm"
RUN = "/.run"  # one execution's script and password file
WORKSPACES, TREES = "/.workspaces", "/.trees"  # gone from the view of an execution
GPUS, _ASIDE = "/.gpus", "/.aside"

SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ssl/certs",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/localtime",
    "/etc/mime.types",
)
DEVICES = ("null", "zero", "full", "random", "urandom")
RANDOM_DEVICES = ("/dev/random", "/dev/urandom")
WRITABLE_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full"))
GPU_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_FLAGS = linux.NOSUID | linux.NODEV
_STAGE = "/tmp"  # there is one on every system; it is covered for a moment
_MB = 1_000_000
_OURS = 64  # files and folders that we may have to make in a workspace
# what everybody could read in /proc about the machine and others, and no script needs
MASKED = ("cmdline", "keys", "key-users")


def build(readable: Sequence[str], hidden: Sequence[str]) -> None:
    """Replace this process's root; needs a mount namespace and a pid namespace of its own.

    `readable` are paths shown where they are, `hidden` folders below them that are shown empty.
    """
    linux.mount("none", "/", None, linux.RECURSIVE | linux.PRIVATE)
    linux.tmpfs(_STAGE, 4 * _MB, 20_000, 0o755)
    for name in ("new", "old"):
        os.mkdir(f"{_STAGE}/{name}")
    # first aside, so that what lies under the staging folder can be bound too
    linux.pivot_root(_STAGE, f"{_STAGE}/old")
    os.chdir("/")
    linux.tmpfs("/new", 4 * _MB, 20_000, 0o755)
    covered = _covered(readable)
    for path in (*SYSTEM, *readable):
        _show(f"/old{path}", f"/new{covered.get(path, path)}")
    for path in hidden:
        for outer, place in covered.items():
            if path.startswith(f"{outer}/"):
                path = place + path.removeprefix(outer)  # noqa: PLW2901
        _hide(f"/new{path}")
    _furnish("/new", "/old")
    linux.mount("proc", "/new/proc", "proc", _FLAGS | linux.NOEXEC)
    os.chdir("/new")
    linux.pivot_root(".", ".")
    linux.unmount(".")
    os.chdir("/")
    _seal(covered)
    sys.path[:] = [path for path in sys.path if os.path.exists(path)]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def _covered(readable: Sequence[str]) -> dict[str, str]:
    """Return where to keep the paths that lie where an execution gets folders of its own."""
    return {
        path: f"{_ASIDE}/{number}"
        for number, path in enumerate(readable)
        if any(path.startswith(f"{own}/") for own in (WORK, HOME, TEMPORARY, SHARED_MEMORY))
    }


def _uncover(covered: dict[str, str]) -> None:
    """Show those paths again, in the folders that have been mounted over them."""
    for path, place in covered.items():
        if os.path.exists(place):
            places.ensure_path(path, is_file=not os.path.isdir(place))
            linux.bind(place, path)


def _show(source: str, target: str) -> None:
    """Bind `source`, or make the same link, at `target`; what does not exist is passed over."""
    if os.path.lexists(target) or not os.path.lexists(source):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.mkdir(target)
    else:
        Path(target).touch()
    linux.bind(source, target)


def _hide(target: str) -> None:
    if os.path.isdir(target):
        linux.tmpfs(target, 4096, 1, 0o555, _FLAGS | linux.RDONLY)


def _furnish(new: str, old: str) -> None:
    """Make the folders, devices and files that programs expect."""
    folders = (WORK, HOME, TEMPORARY, SHARED_MEMORY, RUN, WORKSPACES, TREES, GPUS)
    for path in (*folders, "/proc", "/etc", "/var/tmp"):
        os.makedirs(f"{new}{path}", exist_ok=True)
    for name in DEVICES:
        Path(f"{new}/dev/{name}").touch()
        linux.bind_device(f"{old}/dev/{name}", f"{new}/dev/{name}")
    for name, target in _LINKS.items():
        os.symlink(f"/proc/self/{target}", f"{new}/dev/{name}")
    os.symlink(f"{RUN}/passwd", f"{new}/etc/passwd")
    Path(f"{new}/etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    Path(f"{new}/etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    Path(f"{new}/etc/resolv.conf").write_bytes(_content(f"{old}/etc/resolv.conf"))
    for node in os.listdir(f"{old}/dev"):
        if node in GPU_CONTROL or (node.startswith("nvidia") and node[6:].isdigit()):
            for folder in ("/dev", GPUS):
                Path(f"{new}{folder}/{node}").touch()
            linux.bind_device(f"{old}/dev/{node}", f"{new}{GPUS}/{node}")


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _seal(covered: dict[str, str]) -> None:
    """Make the root read-only, with small writable folders for what imports do."""
    linux.mount("none", "/", None, linux.REMOUNT | linux.BIND | linux.RDONLY | _FLAGS)
    for path in (HOME, TEMPORARY, SHARED_MEMORY):
        linux.tmpfs(path, 16 * _MB, 512, 0o1777)
    _uncover(covered)
    for path in (WORKSPACES, TREES):
        linux.tmpfs(path, _MB, 20_000, 0o700)
        linux.mount("none", path, None, linux.SHARED)


def prepare_view() -> None:
    """Begin an execution's own view; needs new mount and pid namespaces."""
    linux.mount("none", "/", None, linux.RECURSIVE | linux.SLAVE)
    linux.mount("proc", "/proc", "proc", _FLAGS | linux.NOEXEC)
    for name in MASKED:
        if os.path.exists(f"/proc/{name}"):
            linux.mount("/dev/null", f"/proc/{name}", None, linux.BIND)


def enter_workspace(request: Message, script: int, readable: Sequence[str]) -> None:
    """Finish the view: the workspace, its read-only folders, the script, and nothing else.

    `request` is that of the harness for one run; `script` is a descriptor.
    """
    name, trees = request["name"], request["trees"]
    root, uid = f"{WORKSPACES}/{name}", os.lstat(f"{WORKSPACES}/{name}/work").st_uid
    linux.tmpfs(RUN, os.fstat(script).st_size + _MB, 16, 0o755)
    places.copy(script, f"{RUN}/{places.SCRIPT}")
    Path(f"{RUN}/passwd").write_text(f"agent:x:{uid}:{uid}::{HOME}:/bin/sh\n")
    linux.tmpfs(SHARED_MEMORY, request["shared_memory"], 4096, 0o1777)
    for part, target in zip(places.PARTS, (WORK, TEMPORARY, HOME), strict=True):
        os.chmod(f"{root}/{part}", 0o700)
        linux.mount(f"{root}/{part}", target, None, linux.BIND)
        linux.restrict(target, writable=True)
    # a program may have filled the workspace: ours get room, and it gets none of that
    _allow_files(root, request["inodes"] + _OURS)
    for place in trees:
        places.ensure_folder(WORK, place)
    places.ensure_file(WORK, places.SCRIPT)
    _uncover(_covered(readable))
    _allow_files(root, request["inodes"])
    for place, key in trees.items():
        linux.bind(f"{TREES}/{key}", f"{WORK}/{place}")
    linux.bind(f"{RUN}/{places.SCRIPT}", f"{WORK}/{places.SCRIPT}")
    for path in (WORKSPACES, TREES):
        linux.unmount(path)


def _allow_files(root: str, count: int) -> None:
    """Limit the number of files in a workspace to `count`, or to what it has, if that is more."""
    now = os.statvfs(root)
    count = max(count, now.f_files - now.f_ffree)
    if count != now.f_files:
        linux.mount("none", root, None, linux.REMOUNT | _FLAGS, f"nr_inodes={count}")


def show_gpus(numbers: Sequence[int]) -> None:
    """Put the device nodes of these GPUs in place and take all others away."""
    wanted = {*GPU_CONTROL, *(f"nvidia{number}" for number in numbers)} if numbers else set()
    for node in os.listdir(GPUS):
        if node in wanted:
            linux.bind_device(f"{GPUS}/{node}", f"/dev/{node}")
        linux.unmount(f"{GPUS}/{node}")
