"""The package as a whole: what an import costs, what it offers, what the command says."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import sandmle

HEAVY = ["numpy", "pandas", "sklearn", "scipy", "torch", "jinja2", "rich", "typer", "pydantic"]


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_import_loads_nothing_heavy() -> None:
    code = f"import sandmle, sys, json; print(json.dumps([n for n in {HEAVY} if n in sys.modules]))"
    assert json.loads(run("-c", code).stdout) == []


def test_help_loads_no_numeric_library() -> None:
    code = (
        "import sys, json\nfrom sandmle.cli import app\nsys.argv = ['sandmle', '--help']\n"
        "try:\n    app.main()\nexcept SystemExit:\n    pass\n"
        f"print(json.dumps([n for n in {HEAVY[:5]} if n in sys.modules]))"
    )
    result = run("-c", code)
    assert json.loads(result.stdout.splitlines()[-1]) == [], result.stderr


def test_public_names_are_few_and_real() -> None:
    assert len(sandmle.__all__) <= 20
    for name in sandmle.__all__:
        assert getattr(sandmle, name) is not None
    for name, home in sandmle._HOME.items():
        module = importlib.import_module(home)
        assert getattr(module, name).__doc__, f"{name} needs a docstring"


def test_public_names_do_not_hide_a_module() -> None:
    """`sandmle.x` must not be a function or a module depending on what was imported before."""
    root = Path(sandmle.__file__).parent
    modules = {path.stem for path in root.iterdir()}
    assert not modules & set(sandmle._HOME)


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(sandmle, "nothing_of_that_name")


def test_prompts_templates_and_skins_are_shipped() -> None:
    root = Path(sandmle.__file__).parent
    patterns = ("env/prompts/*.j2", "factory/skins/*.toml", "report/templates/*.j2")
    for pattern in (
        *patterns,
        "report/templates/*.css",
        "report/templates/*.js",
        "rollout/cheats/*.j2",
    ):
        assert list(root.glob(pattern))


def test_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    """Nothing written may depend on the order of a set."""
    code = """
import hashlib
from sandmle.factory.build import draw, ladder
from sandmle.factory.mix import Mix, stratum
from sandmle.factory.plan import plan, spec_of

mix = Mix().resolve()
for slot in range(len(mix.families)):
    one = plan(7, slot, 0, stratum(mix, 7, slot))
    tables = draw(one.recipe, one.seed, 12, 12)
    parts = [*tables[:5], *tables.extra.values(), spec_of(one, "").model_dump_json().encode()]
    parts += [script.code.encode() for script in ladder(one.recipe)]
    print(one.task_id, hashlib.sha256(b"".join(parts)).hexdigest())
"""
    outputs = {run("-c", code, env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in "012"}
    assert len(outputs) == 1
    assert outputs.pop().strip()
