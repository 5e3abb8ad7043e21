"""The keeper: imports once, holds the workspaces, and forks workers that share what it imported.

A workspace is a set of files, here a small memory file system, and any worker can run code in it.
The bytes of those files never pass through this process: it hands descriptors around, so that
nothing of one workspace can be found in the memory of another's programs.
"""

import gc
import importlib
import os
import select
import signal
import socket
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from sandmle.files import UnsafeFile, safe_open
from sandmle.sandbox.inside import (
    interpreter,
    landlock,
    linux,
    nursery,
    places,
    processes,
    rootfs,
    seccomp,
    worker,
)
from sandmle.sandbox.inside.wire import Message, Wire, close_all

_TICK_MS = 1000
_TREES_BYTES = 256_000_000  # of public files that no open workspace needs
_FLAGS = linux.NOSUID | linux.NODEV
_SPARE_INODES = 16


def main(wire: Wire, config: Message) -> NoReturn:
    """Build the root, import, then serve requests until the harness hangs up."""
    try:
        keeper = Keeper(wire, config)
    except OSError as error:
        wire.send({"refused": str(error)})
        os._exit(1)
    keeper.serve()
    os._exit(0)


class Keeper:
    """Serves `place`, `open`, `close`, `read`, `list`, `spawn` and `kill`, one at a time."""

    def __init__(self, wire: Wire, config: Message) -> None:
        self.wire, self.config = wire, config
        self.namespaces: bool = config["namespaces"]
        self._trees: dict[str, _Tree] = {}
        self._workspaces: dict[str, list[str]] = {}
        self._uid: int = config["uid"]
        if self.namespaces:
            linux.unshare(linux.NEWNS | linux.NEWIPC | linux.NEWUTS | linux.NEWCGROUP)
            socket.sethostname("sandbox")
            rootfs.build(config["readable"], config["hidden"])
            self._workspace_root, self._tree_root = rootfs.WORKSPACES, rootfs.TREES
        else:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            self._workspace_root = f"{config['folder']}/workspaces"
            self._tree_root = f"{config['folder']}/trees"
            for folder in (self._workspace_root, self._tree_root):
                os.mkdir(folder, 0o711)
        self._nursery = nursery.start(config) if self.namespaces else (None, None)
        os.chdir("/")
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.close(null)

    def serve(self) -> None:
        """Import, report, answer."""
        self.wire.send(self._warm_up())
        poll = select.poll()
        poll.register(self.wire, select.POLLIN)
        while True:
            ready = poll.poll(_TICK_MS)
            self._reap()
            if not ready:
                continue
            try:
                request, descriptors = self.wire.receive()
            except (EOFError, OSError):
                return
            self._answer(request, descriptors)

    def _answer(self, request: Message, descriptors: list[int]) -> None:
        attached: list[int] = []
        try:
            reply, attached = getattr(self, f"_do_{request.pop('do')}")(request, descriptors)
        except FileNotFoundError as error:
            reply = {"missing": str(error)}
        except UnsafeFile as error:
            reply = {"unsafe": str(error)}
        except Exception:
            reply = {"failed": traceback.format_exc()}
        self.wire.send(reply, attached)
        close_all(attached)
        close_all(descriptors)

    def _warm_up(self) -> Message:
        """Import what programs are likely to; stop at a module that starts a thread.

        A process with threads must not fork programs that go on: a lock that another thread held
        would stay locked in them.
        """
        failed: dict[str, str] = {}
        for name in self.config["preload"]:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                continue
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
            if processes.threads() > 1:
                return {"threaded": name}
        interpreter.settle()
        gc.collect()
        gc.freeze()
        linux.merge_pages()
        memory = processes.memory("self")
        self.config["base"] = {
            "data": processes.data_segment(),
            "memory": memory.own if memory else 0,
        }
        self.config["filters"] = [
            [
                seccomp.program(
                    internet=self.namespaces or network,
                    netlink=network,
                    metadata=self.namespaces or self.config["switch_user"],
                    told=told,
                )
                for told in (False, True)
            ]
            for network in (False, True)
            if seccomp.supported()
        ]
        return {
            "ready": True,
            "failed": failed,
            "landlock": landlock.abi(),
            "seccomp": seccomp.supported(),
        }

    def _reap(self) -> None:
        """Collect dead workers; without the nursery nothing runs, and another keeper must begin."""
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid == self._nursery[0]:
                    os._exit(1)

    def _do_spawn(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Fork a worker that talks through the descriptor."""
        pid = os.fork()
        if pid == 0:
            self.wire.close()
            worker.main(Wire(socket.socket(fileno=descriptors[0])), self.config, self._nursery[1])
        return {"pid": pid}, []

    def _do_kill(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """End a worker and what it runs."""
        pid = request["pid"]
        with suppress(ProcessLookupError):
            if not self.namespaces:  # else what it runs goes with it
                os.kill(pid, signal.SIGSTOP)
                processes.sweep(pid)
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return {}, []

    def _do_place(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Store public files: the first message makes the folder, the last one closes it."""
        key, root = request["key"], f"{self._tree_root}/{request['key']}"
        if request["first"]:
            self._evict(request["bytes"])
            if os.path.exists(root):  # of a harness that gave up half-way
                self._drop(root)
            os.mkdir(root, 0o755)
            if self.namespaces:
                size = request["bytes"] + 4096 * (request["files"] + 1)
                linux.tmpfs(root, size, request["files"] + _SPARE_INODES, 0o755)
        for folder in request["folders"]:
            os.mkdir(f"{root}/{folder}", 0o755)
        for name, descriptor in zip(request["names"], descriptors, strict=True):
            places.copy(descriptor, f"{root}/{name}")
        if request["last"]:
            if self.namespaces:
                linux.mount("none", root, None, linux.REMOUNT | linux.RDONLY | _FLAGS)
            self._trees[key] = _Tree(request["bytes"])
        return {}, []

    def _evict(self, needed: int) -> None:
        """Forget files that no open workspace uses, oldest first, to stay within the cap."""
        for key, tree in list(self._trees.items()):
            idle = sum(one.size for one in self._trees.values() if not one.users)
            if idle + needed <= _TREES_BYTES:
                return
            if not tree.users:
                self._drop(f"{self._tree_root}/{key}")
                del self._trees[key]

    def _drop(self, root: str) -> None:
        if self.namespaces:
            linux.unmount(root)
            os.rmdir(root)
        else:
            places.remove(root)

    def _do_open(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Make a workspace on stored files; tells which of them are not here."""
        absent = [key for key in request["trees"].values() if key not in self._trees]
        if absent:
            return {"absent": absent}, []
        name, root = request["name"], f"{self._workspace_root}/{request['name']}"
        os.mkdir(root, 0o711)
        if self.namespaces:
            linux.tmpfs(root, request["bytes"], request["inodes"], 0o711)
        uid = os.getuid()
        if self.config["switch_user"]:
            self._uid += 1
            uid = self._uid
        for part in places.PARTS:
            os.mkdir(f"{root}/{part}", 0o700)
            os.chown(f"{root}/{part}", uid, uid)
        if not self.namespaces:
            for place, key in request["trees"].items():
                places.copy_tree(f"{self._tree_root}/{key}", f"{root}/{place}")
        self._workspaces[name] = list(request["trees"].values())
        for key in self._workspaces[name]:
            self._trees[key].users += 1
        return {}, []

    def _do_close(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Remove a workspace."""
        for key in self._workspaces.pop(request["name"], ()):
            self._trees[key].users -= 1
        self._drop(f"{self._workspace_root}/{request['name']}")
        return {}, []

    def _do_read(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Open a file that a program has written; nothing of it is read here."""
        work = Path(f"{self._workspace_root}/{request['name']}/work")
        return {}, [safe_open(work, request["file"])]

    def _do_list(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Return the paths of what a program has written."""
        return {"names": places.names(f"{self._workspace_root}/{request['name']}/work")}, []


class _Tree:
    """Stored public files: their size, and how many open workspaces show them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.users = 0
