"""The ways of confining, strongest first, and what each of them guarantees."""

import os
import secrets
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from sandmle.types import Isolation

# so that what would wait for a server fails at once and says why
OFFLINE = {"PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

_PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg")


class Mode(NamedTuple):
    """One way; `docs/sandbox.md` explains them."""

    name: str
    namespaces: bool
    user_namespace: bool
    switch_user: bool


MODES = (
    Mode("ns-root", namespaces=True, user_namespace=False, switch_user=True),
    Mode("ns-user", namespaces=True, user_namespace=True, switch_user=False),
    Mode("uid+landlock", namespaces=False, user_namespace=False, switch_user=True),
    Mode("landlock", namespaces=False, user_namespace=False, switch_user=False),
)


def objection(mode: Mode) -> str:
    """Return why a mode cannot work here, as far as that can be said without trying."""
    if sys.platform != "linux":
        return "needs Linux"
    if mode.switch_user and os.geteuid() != 0:
        return "needs root"
    if not mode.namespaces and not mode.switch_user and os.geteuid() == 0:
        return "root's own rights cannot be taken from a program in this way"
    return ""


def isolation(
    name: str, mode: Mode, refused: dict[str, str], landlock: int, seccomp: bool
) -> Isolation:
    """Describe what a working mode guarantees, given what the kernel offered."""
    # without a user of its own a program could end our processes, unless signals are scoped
    apart = mode.namespaces or mode.switch_user or landlock >= 6
    return Isolation(
        mode=name,
        refused=refused,
        fs_hidden=True,
        fs_absent=mode.namespaces,
        net=mode.namespaces or seccomp,
        sockets=mode.namespaces,
        kill_all=apart,
        signals=apart,
        memory_limit=True,
        process_limit=True,
        disk_quota=mode.namespaces,
        caps_dropped=True,
        seccomp=seccomp,
        landlock=landlock,
    )


def interpreter_paths() -> list[str]:
    """Return the paths that this interpreter and its packages need, without those of the system."""
    paths: list[Path] = []
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix)):
        if prefix not in ("/usr", "/"):
            paths += [Path(prefix, part) for part in _PREFIX_PARTS]
    paths += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    step = Path(sys.executable)
    while step.is_symlink():  # python -> /opt/python3.12/bin/python -> ...
        step = step.parent / step.readlink()
        paths.append(step.parent)
    found = dict.fromkeys(os.path.normpath(path) for path in paths if path.exists())
    return [one for one in found if not any(_is_below(one, other) for other in found)]


def own_paths() -> list[str]:
    """Return where this package lies: agent code must not call the generator with a guessed seed.

    Only what lies below an interpreter path matters; the rest is not shown anyway.
    """
    paths = [str(Path(__file__).parents[1])]
    with suppress(PackageNotFoundError):
        paths.append(str(getattr(distribution("sandmle"), "_path", "")))
    shown = interpreter_paths()
    return [path for path in paths if any(_is_below(path, outer) for outer in shown)]


def spared(shown: list[str], hidden: list[str]) -> list[str]:
    """Return paths that cover `shown` but not `hidden`: an allow-list cannot take back.

    Links are followed first: what counts is where they lead, as `lib64` to `lib`.
    """
    found: list[str] = []
    kept_out = [os.path.realpath(path) for path in hidden]
    for path in dict.fromkeys(os.path.realpath(path) for path in shown):
        if not any(one == path or _is_below(one, path) for one in kept_out):
            found.append(path)
        elif path not in kept_out:
            inside = [child for child in sorted(Path(path).iterdir()) if not child.is_symlink()]
            found += spared([str(child) for child in inside], kept_out)
    return found


def exposed(path: Path) -> str | None:
    """Return the path by which agent code would see a folder, if it would."""
    real = os.path.realpath(path)
    return next((one for one in _shown() if _is_below(real, one)), None)


@cache
def _shown() -> tuple[str, ...]:
    from sandmle.sandbox.inside.rootfs import SYSTEM

    return tuple(os.path.realpath(one) for one in (*SYSTEM, *interpreter_paths()))


def free_uid() -> int:
    """Return a user number that nobody has, with as many free ones above it as we may need.

    Only numbers that this user namespace knows can be switched to.
    """
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    first, count = max(((int(s[0]), int(s[2])) for s in spans), key=lambda span: span[1])
    low, high = max(first, min(200_000, first + count // 2)), first + count - 1
    return low + secrets.randbelow(max(1, (min(high, 2_000_000_000) - low) // 2))


def gpu_names() -> dict[str, str]:
    """Return the UUID of each NVIDIA GPU by the number of its device node."""
    names = {}
    for about in Path("/proc/driver/nvidia/gpus").glob("*/information"):
        lines = [line.partition(":") for line in about.read_text().splitlines()]
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if "Device Minor" in fields and "GPU UUID" in fields:
            names[fields["Device Minor"]] = fields["GPU UUID"]
    return names


def environment() -> dict[str, str]:
    """Return the whole environment of agent code, but for its own folders: an allow-list."""
    # one thread each: for 50-200 rows more threads are slower, and not deterministic
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")
    folder = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join((folder, "/usr/local/bin", "/usr/bin", "/bin")),
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "LOKY_MAX_CPU_COUNT": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # pyarrow, which pandas imports where it is installed, would start a thread when loaded
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "TORCHDYNAMO_DISABLE": "1",  # there is no compiler to wait for
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asks about GPUs without touching them
        "CUDA_VISIBLE_DEVICES": "",  # what a fork must not inherit is not begun; see Limits.gpu
        **{f"{name}_NUM_THREADS": "1" for name in threads},
    }


def _is_below(path: str, outer: str) -> bool:
    return path != outer and path.startswith(outer.rstrip("/") + "/")
