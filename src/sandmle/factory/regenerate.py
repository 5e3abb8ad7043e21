"""What `private/generate_task_env.py` of a procedural task does."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from sandmle.factory.build import MAX_ROWS, Recipe, description, draw
from sandmle.factory.trial import FRESH
from sandmle.types import TaskSpec

# in the provenance of a task whose story and description a model wrote, before the model's name
TOLD_BY = "; told by "
STUB = '''\
"""Rebuilds this task's data, or draws fresh rows from the same distribution.

    python generate_task_env.py --out DIR [--seed S] [--n-train N] [--n-test M]

Written for sandmle {version}; without options it gives the shipped files again.
"""

from pathlib import Path

from sandmle.factory.regenerate import main

main(Path(__file__).with_name("spec.json"))
'''


def main(spec_path: Path, arguments: Sequence[str] | None = None) -> None:
    """Write train, test, sample_submission, answer and description into `--out`."""
    spec = TaskSpec.model_validate_json(spec_path.read_bytes())
    size = spec.final_dimensions
    parser = argparse.ArgumentParser(description="Rebuild or redraw the data of a task.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--n-train", type=int, default=size.n_samples)
    parser.add_argument("--n-test", type=int, default=size.n_test)
    options = parser.parse_args(arguments)
    if min(options.n_train, options.n_test) < 1 or (options.seed or 0) < 0:
        parser.error("a seed is not negative, and there is at least one row of each sort")
    if options.n_train + options.n_test > MAX_ROWS:
        parser.error(f"at most {MAX_ROWS:,} rows in all, for there are no more ids")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"{options.out} is a file; --out names a folder")
    recipe = Recipe.model_validate(spec.parameters)
    seed = spec.seed if options.seed is None else (FRESH, 0, options.seed)
    tables = draw(recipe, seed, options.n_train, options.n_test)
    text = description(recipe, options.n_train, options.n_test, tables.sample_submission).encode()
    if TOLD_BY in spec.provenance.source:  # it was written, not derived
        text = (spec_path.parent.parent / "public" / "description.md").read_bytes()
    options.out.mkdir(parents=True, exist_ok=True)
    answer = tables.answer if recipe.denoised else tables.noisy
    files = {
        "train.csv": tables.train,
        "test.csv": tables.test,
        "answer.csv": answer,
        "sample_submission.csv": tables.sample_submission,
        "description.md": text,
        **tables.extra,
    }
    for name, content in files.items():
        path = options.out / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
