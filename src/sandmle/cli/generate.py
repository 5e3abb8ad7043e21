"""`sandmle generate`."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.options import AsJson, resumable
from sandmle.cli.output import emit, say
from sandmle.config import DEFAULT_SANDBOX

if TYPE_CHECKING:
    from sandmle.factory.mix import Mix, Seed
    from sandmle.factory.slot import Filled

_VALIDATION = 0.1  # the share of tasks to validate on
Names = Annotated[str | None, typer.Option(help="Only these; separate several by commas.")]


def generate(
    out: Annotated[Path, typer.Argument(help="The folder of the corpus; made if need be.")],
    n: Annotated[int, typer.Option("--n", help="How many tasks.")] = 8,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal bytes.")] = 0,
    family: Names = None,
    modality: Names = None,
    task_type: Names = None,
    level: Names = None,
    mix: Annotated[
        str, typer.Option(help="uniform, paper, or a TOML file with weights of families.")
    ] = "uniform",
    seeds: Annotated[
        str | None,
        typer.Option(help="Structures to imitate: mle-bench, ids of it with commas, or a file."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take seeds that are for evaluation only, too.")
    ] = False,
    holdout_families: Annotated[
        str | None, typer.Option(help="Families that go to the split `ood` as a whole.")
    ] = None,
    factory: Annotated[
        str,
        typer.Option(help="procedural; llm: a model writes the tasks; hybrid: their stories."),
    ] = "procedural",
    model: Annotated[
        str | None,
        typer.Option(help="For llm, hybrid: replay:example, openai:MODEL or hf:PATH."),
    ] = None,
    per_seed: Annotated[
        int, typer.Option(help="For llm, hybrid: tasks a seed, 5 scenarios x 4.")
    ] = 20,
    concurrency: Annotated[int, typer.Option(help="For llm, hybrid: seeds worked on at once.")] = 1,
    max_usd: Annotated[float | None, typer.Option(help="For llm, hybrid: spend no more.")] = None,
    usd_per_million: Annotated[
        str | None,
        typer.Option(help="For llm, hybrid: price of prompt and reply tokens, as 0.5,1.5."),
    ] = None,
    test_policy: Annotated[str, typer.Option(help="adaptive, or paper20.")] = "adaptive",
    thresholds: Annotated[str, typer.Option(help="anchors, or paper.")] = "anchors",
    val: Annotated[
        int | None, typer.Option(help="How many go to the split `val`; a tenth if not given.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes side by side.")] = 2,
    sandbox: Annotated[
        str, typer.Option(help="Where the ladder runs, for example bare.")
    ] = DEFAULT_SANDBOX,
    as_json: AsJson = False,
) -> None:
    """Write a corpus of verified tasks. The same command goes on where it was interrupted."""
    from sandmle.errors import UsageError
    from sandmle.factory.pipeline import make, new_job, require
    from sandmle.factory.size import megabytes

    if factory in ("llm", "hybrid"):
        from sandmle.cli.studio import by_model

        if seeds is None or model is None:
            raise UsageError(f"--factory {factory}: give --seeds and --model")
        wanted = _seeds(seeds, force, every=factory == "llm")
        by_model(
            out, factory, wanted, seed, model, per_seed, concurrency, max_usd, usd_per_million,
            _VALIDATION, sandbox, as_json,
        )  # fmt: skip
        return
    if factory != "procedural":
        raise UsageError(f"--factory {factory}: write procedural, llm or hybrid")
    chosen = _mix(mix, _seeds(seeds, force), family, modality, task_type, level, holdout_families)
    require(sandbox, workers)
    job = new_job(n, seed, chosen, test_policy, thresholds)
    if val is not None and not 0 <= val < n:
        raise UsageError(f"--val {val}: some of the {n} tasks must be left to train on")
    say(f"{n} {'task' if n == 1 else 'tasks'}, about {megabytes(job, n):,.1f} MB in all")
    share = _VALIDATION if val is None else val / n
    with resumable():
        index = make(out, n, job, share, workers=workers, progress=_tell, sandbox=sandbox)
    if as_json:
        facts = {"corpus": str(out), "tasks": n, "root_hash": index.root_hash}
        emit({**facts, "funnel": index.funnel})
    else:
        where = shlex.quote(str(out))
        attempts = index.funnel["attempts"]
        print(f"{n} {'task' if n == 1 else 'tasks'} in {where}, of {attempts} attempts")
        print(f"sandmle rollout {where} --out runs/first    plays the ladder on them")


def _tell(filled: "Filled", done: int, total: int, rejected: "Counter[str]") -> None:
    reasons = ", ".join(f"{k} x {name}" for name, k in rejected.most_common(3))
    say(
        f"[{done}/{total}] {filled.task_id}" + (f"   rejected so far: {reasons}" if reasons else "")
    )


def _mix(
    mix: str,
    seeds: "tuple[Seed, ...]",
    family: str | None,
    modality: str | None,
    task_type: str | None,
    level: str | None,
    holdout: str | None,
) -> "Mix":
    """Put the options on top of what the file of a mix says."""
    from sandmle.errors import UsageError
    from sandmle.factory.mix import read_mix

    levels = _names(level)
    if not all(name.isascii() and name.isdigit() for name in levels):
        raise UsageError(f"--level {level}: levels are whole numbers, several separated by commas")
    given = {
        "families": dict.fromkeys(_names(family), 1.0),
        "modalities": _names(modality),
        "task_types": _names(task_type),
        "levels": tuple(map(int, levels)),
        "holdout": _names(holdout),
        "seeds": seeds,
    }
    return read_mix(mix).model_copy(update={name: value for name, value in given.items() if value})


def _seeds(wanted: str | None, force: bool, every: bool = False) -> "tuple[Seed, ...]":
    """Return the seeds that are named; of the catalogue those with families, or `every` one."""
    from sandmle.factory.family import FAMILIES
    from sandmle.factory.seeds.choose import ALL, choose_seeds

    chosen = choose_seeds(wanted, force) if wanted is not None else ()
    if wanted != ALL or every:
        return chosen
    able = tuple(one for one in chosen if any(f.supports(one.dna) for f in FAMILIES))
    say(f"{len(able)} of {len(chosen)} seeds have families that can imitate them")
    return able


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
