"""The Technical Writer: the description, checked for what must and must not be in it."""

import re
from typing import NamedTuple

from sandmle.factory.mix import Seed
from sandmle.factory.roles.attempts import worked
from sandmle.factory.roles.blueprint import SAMPLE, Blueprint, Data
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.developer import public_names
from sandmle.factory.roles.strategist import prompt
from sandmle.factory.roles.workshop import Unfit
from sandmle.factory.seeds.choose import words_of
from sandmle.factory.seeds.words import surviving
from sandmle.llm.structured import read_files
from sandmle.metrics.registry import Metric

ATTEMPTS = 3
_NAME = "description.md"
_NAMES = re.compile(re.escape(_NAME))
_AGAIN = "Reply with the whole text again, in a block that begins with ````markdown description.md."
_PRIVATE = re.compile(
    r"answer\.csv|threshold|evaluator|generate_task_env|solutions/|hidden[ _]rule|spec\.json|"
    r"\b(gold|silver|bronze)\b",
    re.IGNORECASE,
)
_RUN = 7  # words in a row that are no accident


class Facts(NamedTuple):
    """What a description must say, and what it must not.

    `columns` are those of the tables without the id, `targets` those of a submission and the
    target's, `labels` the classes; `rule` must not be told. `draft` says it all, where there is
    one. `words` are those of the seed.
    """

    title: str
    context: str
    files: tuple[str, ...]
    id_column: str
    columns: tuple[str, ...]
    targets: tuple[str, ...]
    labels: tuple[str, ...]
    metric: Metric
    rule: str
    head: str
    words: frozenset[str]
    draft: str = ""

    @property
    def better(self) -> str:
        """Return which way the metric is better, as a description has to say it."""
        return "higher" if self.metric.direction == "max" else "lower"


def facts_of(seed: Seed, plan: Blueprint, data: Data) -> Facts:
    """Return the facts of a task that a model specified."""
    return Facts(
        title=plan.spec.task_name,
        context=plan.spec.domain_context,
        files=tuple(public_names(data)),
        id_column=plan.id_column,
        columns=tuple(one.name for one in plan.spec.feature_mapping.values()),
        targets=plan.targets,
        labels=(),
        metric=plan.metric,
        rule=plan.spec.hidden_rule_logic,
        head="\n".join(data.made.files[SAMPLE].decode().splitlines()[:4]),
        words=words_of(seed),
    )


def describe(desk: Desk, call: Call, facts: Facts) -> str:
    """Return a description that says all it must; `Unfit` with the last fault if none does."""

    def build(text: str) -> str:
        found = read_files(text, _NAMES)[_NAME]
        require_complete(found, facts)
        return found

    return worked(desk, call, _brief(facts), build, _AGAIN, ATTEMPTS)


def _brief(facts: Facts) -> str:
    return prompt(
        "writer",
        title=facts.title,
        context=facts.context,
        features=", ".join(facts.columns),
        files=", ".join(facts.files),
        metric=facts.metric.title,
        better=facts.better,
        columns=", ".join([facts.id_column, *facts.targets]),
        head=facts.head,
        draft=facts.draft,
    )


def require_complete(text: str, facts: Facts) -> None:
    """Make the mechanical checks; `Unfit` names the first thing that lacks or must go."""
    for what, names in (
        ("file", facts.files),
        ("column", (facts.id_column, *facts.targets, *facts.columns)),
        ("class", facts.labels),
    ):
        absent = [name for name in names if not _stands(name, text)]
        if absent:
            raise Unfit("description_lacks", f"the {what} {absent[0]!r} is not named")
    if facts.metric.title.lower() not in text.lower():
        raise Unfit("description_lacks", f"the metric is not named: {facts.metric.title}")
    if facts.better not in text.lower():
        raise Unfit("description_lacks", f"it does not say that {facts.better} is better")
    found = _PRIVATE.search(text)
    if found is not None:
        raise Unfit("description_tells", f"{found[0]!r} is not for whoever solves the task")
    heard = surviving(facts.words, text)
    if heard:
        raise Unfit("description_tells", f"the seed can be heard in it: {', '.join(heard[:5])}")
    rule, said = _runs(facts.rule), _runs(text)
    if rule & said:
        raise Unfit("description_tells", f"it copies the rule: {' '.join(min(rule & said))!r}")


def _stands(name: str, text: str) -> bool:
    """Return whether a name stands in a text by itself, not as a part of another."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}
