"""The Technical Writer: the description, checked for what must and must not be in it."""

import re

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


def describe(desk: Desk, call: Call, seed: Seed, plan: Blueprint, data: Data) -> str:
    """Return a description that says all it must; `Unfit` with the last fault if none does."""

    def build(text: str) -> str:
        found = read_files(text, _NAMES)[_NAME]
        _complete(found, seed, plan, data)
        return found

    return worked(desk, call, _brief(plan, data), build, _AGAIN, ATTEMPTS)


def _brief(plan: Blueprint, data: Data) -> str:
    return prompt(
        "writer",
        title=plan.spec.task_name,
        context=plan.spec.domain_context,
        features=", ".join(one.name for one in plan.spec.feature_mapping.values()),
        files=", ".join(public_names(data)),
        metric=plan.metric.title,
        better="higher" if plan.metric.direction == "max" else "lower",
        columns=", ".join([plan.id_column, *plan.targets]),
        head="\n".join(data.made.files[SAMPLE].decode().splitlines()[:4]),
    )


def _complete(text: str, seed: Seed, plan: Blueprint, data: Data) -> None:
    """Make the mechanical checks; `Unfit` names the first thing that lacks or must go."""
    features = [one.name for one in plan.spec.feature_mapping.values()]
    for what, names in (
        ("file", public_names(data)),
        ("column", [plan.id_column, *plan.targets, *features]),
    ):
        absent = [name for name in names if name not in text]
        if absent:
            raise Unfit("description_lacks", f"the {what} {absent[0]!r} is not named")
    if plan.metric.title.lower() not in text.lower():
        raise Unfit("description_lacks", f"the metric is not named: {plan.metric.title}")
    better = "higher" if plan.metric.direction == "max" else "lower"
    if better not in text.lower():
        raise Unfit("description_lacks", f"it does not say that {better} is better")
    found = _PRIVATE.search(text)
    if found is not None:
        raise Unfit("description_tells", f"{found[0]!r} is not for whoever solves the task")
    heard = surviving(words_of(seed), text)
    if heard:
        raise Unfit("description_tells", f"the seed can be heard in it: {', '.join(heard[:5])}")
    rule, said = _runs(plan.spec.hidden_rule_logic), _runs(text)
    if rule & said:
        raise Unfit("description_tells", f"it copies the rule: {' '.join(min(rule & said))!r}")


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}
