"""`tasks check --deep` for tasks that a model wrote: its programs are run again."""

from collections.abc import Mapping

from sandmle.errors import GradingError, TaskError
from sandmle.factory.regenerate import TOLD_BY
from sandmle.factory.roles.hybrid import facts_of
from sandmle.factory.roles.judge import ladder_of
from sandmle.factory.roles.workshop import GENERATOR, Unfit, make
from sandmle.factory.roles.writer import require_complete
from sandmle.factory.trial import Stage
from sandmle.files import sha256
from sandmle.grading.grader import Grader, read_answers
from sandmle.metrics.registry import METRICS
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task
from sandmle.types import Check, TaskSpec

_DIGITS = 1e-4  # of the size of a score: five digits, and the last may be rounded either way


def written_by_model(spec: TaskSpec) -> bool:
    """Return whether a task has a generator of its own."""
    return spec.provenance.source.startswith("model ")


def told_by_model(spec: TaskSpec) -> bool:
    """Return whether a model wrote story and description of a procedural task."""
    return TOLD_BY in spec.provenance.source


def check_description(task: Task, spec: TaskSpec, files: Mapping[str, bytes]) -> Check:
    """Make the writer's checks again; `files` are what the specification gives."""
    try:
        require_complete(task.description, facts_of(spec, files))
    except Unfit as error:
        return Check(name="description", passed=False, detail=f"{error.reason}: {error}")
    return Check(name="description", passed=True)


def check_again(task: Task, spec: TaskSpec, sandbox: Sandbox) -> list[Check]:
    """Rebuild the data under two hash seeds, and run the ladder on what is shipped."""
    size, script = spec.final_dimensions, task.text(f"private/{GENERATOR}")
    checks = []
    for number in (1, 2):
        name = f"rebuilt:hash_seed_{number}"
        try:
            made = make(script, sandbox, spec.seed[0], size.n_samples, size.n_test, number, number)
        except Unfit as error:
            checks.append(Check(name=name, passed=False, detail=f"{error.reason}: {error}"))
            continue
        files = {
            f"{'private' if path == 'answer.csv' else 'public'}/{path}": content
            for path, content in made.files.items()
            if path != "threshold.json"
        }
        other = sorted(p for p in files if task.card.files.get(p) != sha256(files[p]))
        detail = f"not what the generator gives: {', '.join(other[:3])}" if other else ""
        checks.append(Check(name=name, passed=not other, value=len(other), limit=0, detail=detail))
    return [*checks, _ladder(task, sandbox)]


def _ladder(task: Task, sandbox: Sandbox) -> Check:
    """Run every script on the public files and compare its score with that of the card."""
    scripts = {
        name.removeprefix("private/"): task.text(name)
        for name in task.card.files
        if name.startswith("private/solutions/")
    }
    public = {
        name.removeprefix("public/"): task.read(name)
        for name in task.card.files
        if name.startswith("public/")
    }
    metric, schema = METRICS.get(task.card.metric.name), task.card.submission.model_dump()
    before = {rung.name: rung.test for rung in task.card.ladder}
    other = []
    try:
        answers = read_answers(task.read("private/answer.csv"), "answer.csv", schema, None)
        with Stage(public, schema, Grader(task).ids or [], sandbox) as stage:
            for script in ladder_of(scripts):
                found = stage.predict(script)
                score = metric(*metric.kind.arrays(answers.columns, found, schema))
                known = before.get(script.name)
                if known is None or abs(score - known) > _DIGITS * max(abs(known), 1e-5):
                    other.append(f"{script.name}: {known} before, {score:.5g} now")
    except (TaskError, GradingError, Unfit) as error:
        other.append(str(error).splitlines()[0])
    return Check(
        name="ladder_again", passed=not other, value=len(other), limit=0, detail="; ".join(other)
    )
