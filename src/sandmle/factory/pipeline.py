"""`generate`: a corpus of accepted tasks, written to a folder; interrupted, it goes on."""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from sandmle import __version__
from sandmle.config import DEFAULT_SANDBOX
from sandmle.errors import UsageError
from sandmle.factory.crew import Crew
from sandmle.factory.gate import ThresholdRule
from sandmle.factory.mix import Mix, stratum
from sandmle.factory.plan import TestPolicy, task_id
from sandmle.factory.slot import MAX_ATTEMPTS, Filled, Job
from sandmle.files import Locked, lock, to_json, write_atomic
from sandmle.registry import nearest
from sandmle.sandbox.base import SANDBOXES
from sandmle.tasks.corpus import (
    INDEX,
    PAGE,
    Corpus,
    CorpusIndex,
    open_corpus,
    root_hash,
    split_ids,
    write_index,
)

_JOB = ".job.json"
_SEED_BITS = 63

Progress = Callable[[Filled, int, int, "Counter[str]"], None]


def generate(
    out: Path,
    n: int,
    seed: int = 0,
    family: str | None = None,
    *,
    mix: Mix | None = None,
    policy: TestPolicy = "adaptive",
    thresholds: ThresholdRule = "anchors",
    validation: float = 0.1,
    workers: int = 2,
    progress: Progress | None = None,
    sandbox: str = DEFAULT_SANDBOX,
) -> Corpus:
    """Write a corpus of `n` accepted tasks to `out`, or go on with one that was interrupted.

    The same seed and mix give the same bytes, whatever `workers` and `sandbox` are; a larger `n`
    adds tasks to those that are there. `family` is short for a mix of one family. `progress` is
    called with each slot that is filled, how many are, how many will be, and what was rejected so
    far for which reason. Raises `UsageError` if it cannot start, `TaskError` if a slot cannot be
    filled.
    """
    chosen = mix or Mix()
    if family is not None:
        chosen = chosen.model_copy(update={"families": {family: 1.0}})
    job = new_job(n, seed, chosen, policy, thresholds)
    make(out, n, job, validation, workers, progress, sandbox)
    return open_corpus(out)


def make(
    out: Path,
    n: int,
    job: Job,
    validation: float = 0.1,
    workers: int = 2,
    progress: Progress | None = None,
    sandbox: str = DEFAULT_SANDBOX,
) -> CorpusIndex:
    """Do what `generate` does, and return the index alone: for corpora too large to hold."""
    require(sandbox, workers)
    _check_folder(out)
    try:
        with lock(out):
            _claim(out, n, job)
            slots = _fill(out, n, job, sandbox, min(workers, n), progress)
            index = _index(out, sorted(slots, key=lambda one: one.slot), job, validation)
            write_index(out, index)
    except Locked:
        raise UsageError(f"{out}: another process is writing to it") from None
    except OSError as error:
        why = error.strerror or error
        raise UsageError(
            f"{out}: cannot be written ({why}); the same command goes on from here"
        ) from None
    return index


def require(sandbox: str, workers: int) -> None:
    """Refuse a sandbox that there is not, and less than one worker."""
    SANDBOXES.get(sandbox)
    if workers < 1:
        raise UsageError(f"{workers} workers: it takes at least one")


def new_job(n: int, seed: int, mix: Mix, policy: str, thresholds: str) -> Job:
    """Return the job that some wishes describe; `UsageError` for one that cannot be."""
    if n < 1:
        raise UsageError(f"{n} tasks: ask for at least one")
    if not 0 <= seed < 2**_SEED_BITS:
        raise UsageError(f"seed {seed}: a seed is a whole number from 0 up, below 2^{_SEED_BITS}")
    for what, value, kind in (
        ("test policy", policy, TestPolicy),
        ("thresholds", thresholds, ThresholdRule),
    ):
        if value not in get_args(kind):
            raise UsageError(f"unknown {what} {value!r}; {nearest(value, list(get_args(kind)))}")
    return Job.model_validate(
        {"seed": seed, "mix": mix.resolve(), "policy": policy, "thresholds": thresholds}
    )


def _fill(
    out: Path, n: int, job: Job, backend: str, workers: int, progress: Progress | None
) -> list[Filled]:
    """Fill the slots of a corpus, several side by side."""
    slots: list[Filled] = []
    rejected: Counter[str] = Counter()
    with closing(Crew(out, job, workers, backend)) as crew:
        for filled in crew.fill(n):
            slots.append(filled)
            rejected.update(filled.rejected)
            if progress is not None:
                progress(filled, len(slots), n, rejected)
    return slots


def _check_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None


def _claim(out: Path, n: int, job: Job) -> None:
    """Refuse a folder that holds anything but tasks of this very job; note the job in it."""
    try:
        same = Job.model_validate_json((out / _JOB).read_bytes()) == job
    except FileNotFoundError:
        same = True
    except ValidationError:
        same = False  # of another version
    names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    names -= {INDEX, PAGE}
    if names and not same:
        raise UsageError(
            f"{out}: holds a corpus of another seed, mix or policy; choose another folder"
        )
    # first attempts first: most tasks are one, so a folder of this corpus is known after few draws
    for attempt, slot in product(range(MAX_ATTEMPTS), range(n) if names else ()):
        if not names:
            break
        names.discard(task_id(job.seed, slot, attempt, stratum(job.mix, job.seed, slot).domain))
    if names:
        raise UsageError(
            f"{out}: holds {min(names)!r}, which is not of this corpus; choose another folder, "
            "or ask for as many tasks as are there"
        )
    write_atomic(out / _JOB, to_json(job.model_dump(mode="json"), indent=2) + "\n")


def _index(out: Path, slots: Sequence[Filled], job: Job, validation: float) -> CorpusIndex:
    held_out = [one for one in slots if one.family in job.mix.holdout]
    others = [one for one in slots if one.family not in job.mix.holdout]
    train, val = split_ids(
        {one.task_id: f"{one.family}/{one.metric}" for one in others},
        validation,
        job.seed,
        {one.task_id: one.fingerprint for one in others},
    )
    splits = {"train": tuple(train), "val": tuple(val)}
    if job.mix.holdout:
        splits["ood"] = tuple(sorted(one.task_id for one in held_out))
    rejected = Counter(reason for one in slots for reason in one.rejected)
    funnel = {"accepted": len(slots), "attempts": len(slots) + rejected.total()}
    return CorpusIndex(
        name=out.resolve().name,
        version="1",
        generator=f"sandmle {__version__}",
        seed=job.seed,
        mix=job.model_dump(mode="json", exclude={"seed"}),
        splits=splits,
        funnel=funnel | {f"rejected: {reason}": k for reason, k in sorted(rejected.items())},
        root_hash=root_hash((one.task_id, one.content_hash) for one in slots),
    )
