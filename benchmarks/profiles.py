"""Derive what a warm sandbox imports beforehand, and write `sandmle/sandbox/profiles.toml`.

    python benchmarks/profiles.py [--dry]

Runs every agent script in an interpreter of its own and takes down which modules it leaves behind,
those that it imported late and by itself included: the first optimiser of torch, for one, imports
more than torch does. The list is then cut to names that bring in the others. Run it where all that
the scripts need is installed. With `--dry` the profiles are printed and not written.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from data import write_inputs
from programs import Script, agent_scripts, missing

import sandmle.sandbox.profiles
from sandmle.config import SandboxSection
from sandmle.files import write_atomic
from sandmle.sandbox.confined import Confined
from sandmle.sandbox.modes import MODES, environment

TARGET = Path(sandmle.sandbox.profiles.__file__).with_suffix(".toml")
BASE = "tabular"
PROFILES = (BASE, "vision", "audio", "torch")
HEADER = """\
# Written by benchmarks/profiles.py: what typical scripts import. The profiles after the first hold
# only what they add to it.
"""

# The script is `__main__`, as for any agent, and finds nothing of this in its way. `sys.modules`
# holds the names in the order in which their imports ended, the innermost first; a finder that
# finds nothing sees them in the order in which they began.
_RUN = """
import sys
def run(path, target):
    begun = []
    class Witness:
        @staticmethod
        def find_spec(name, *_):
            begun.append(name)
    sys.argv = [path]
    with open(path, encoding="utf-8") as stream:
        source = stream.read()
    sys.meta_path.insert(0, Witness)
    exec(compile(source, path, "exec", dont_inherit=True), globals())
    names = [name for name in dict.fromkeys([*begun, *sys.modules]) if name in sys.modules]
    with open(target, "w", encoding="utf-8") as stream:
        stream.write("\\n".join(names))
run(*sys.argv[1:])
"""
_BARE = "import sys; print(*sys.modules, sep='\\n')"
_CUT = """
import importlib, os, sys
known, names = (part.split() for part in sys.stdin.read().split("|"))
for name in known:
    importlib.import_module(name)
for name in names:
    if name not in sys.modules:
        try:
            importlib.import_module(name)
        except Exception:
            continue
        print(name, len(os.listdir("/proc/self/task")), flush=True)
"""


def profile_of(script: Script) -> str:
    if "torch" in script.needs:
        return "torch"
    return {"image": "vision", "audio": "audio"}.get(script.modality, BASE)


def interpreter(code: str, *arguments: str, cwd: str, stdin: str = "") -> str:
    """Run code as agent code is run, but for the walls; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=stdin,
        cwd=cwd,
        env={**environment(), "HOME": cwd, "TMPDIR": cwd},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def modules_of(script: Script, inputs: Path) -> list[str]:
    """Run a script and return the modules it leaves, in the order in which they were begun."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(inputs / script.modality, f"{folder}/input")
        path, target = Path(folder, "script.py"), Path(folder, "modules.txt")
        path.write_text(script.source, encoding="utf-8")
        interpreter(_RUN, str(path), str(target), cwd=folder)
        return target.read_text(encoding="utf-8").split()


def cut(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return those names that no name before them and none of `known` brings in."""
    with tempfile.TemporaryDirectory() as folder:
        text = interpreter(_CUT, cwd=folder, stdin=f"{' '.join(known)}|{' '.join(names)}")
    kept = []
    for line in text.splitlines():
        name, threads = line.split()
        if int(threads) > 1:
            sys.exit(f"importing {name} starts a thread; a process with threads cannot be forked")
        kept.append(name)
    return [one for one in kept if not any(other.startswith(f"{one}.") for other in kept)]


def collect(inputs: Path) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        bare = {"__main__", *interpreter(_BARE, cwd=folder).split()}
    found: dict[str, dict[str, None]] = {profile: {} for profile in PROFILES}
    for script in agent_scripts():
        absent = missing(script.needs)
        if absent:
            sys.exit(f"{script.name} needs {', '.join(absent)}")
        names = [name for name in modules_of(script, inputs) if name not in bare]
        print(f"{script.name:<40}{len(names):>6} modules", flush=True)
        found[profile_of(script)] |= dict.fromkeys(names)
    base = cut(list(found[BASE]), ())
    others = {one: cut(list(found[one]), base) for one in PROFILES if one != BASE}
    return {BASE: base, **others}


def as_toml(profiles: dict[str, list[str]]) -> str:
    blocks = [HEADER]
    for profile, names in profiles.items():
        blocks.append(f"{profile} = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n")
    return "\n".join(blocks)


def check_boot() -> None:
    """See that a sandbox imports all of it and runs a program."""
    sandbox = Confined("ns", MODES, SandboxSection(preload="full"), workers=1)
    facts = sandbox._keeper.facts
    sandbox.close()
    if facts["failed"]:
        sys.exit(f"not imported: {facts['failed']}")
    print(f"a sandbox with all of it works, in {sandbox.isolation.mode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        text = as_toml(collect(Path(folder)))
    print(text)
    if not options.dry:
        write_atomic(TARGET, text)
        check_boot()


if __name__ == "__main__":
    main()
