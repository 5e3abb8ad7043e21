"""The policy `experts:tables`: programs put together at random, for a model to begin from.

Each expert draws how to clean the cells, which features to make and which model to fit, among
things that run on the columns it can see, not among those that fit the task's rule: it does not
know that. So most of its programs are mediocre, a few are very good, and some have a mistake, which
the expert mends when it sees the error. What a good program is for which table is left to be
learned.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.llm.base import LLM, Completion, Message
from sandmle.metrics.registry import METRICS
from sandmle.rollout import snippets
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.snippets import Model, Snippet
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table
from sandmle.types import TaskCard

Part = TypeVar("Part", Snippet, Model)

_MISTAKES = ("file", "column", "ids", "import", "name", "bracket")
_MISTAKEN, _SLOW, _MALFORMED, _RESTLESS = 0.16, 0.008, 0.015, 0.25
_PRINTS, _VALUE_LOGS = 0.15, 0.15
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_CODE = re.compile(r"[A-Z]+\d*[-/.]\S+")
_FORMS = {
    "label": "form[target] = m.predict(A[n:])",
    "score": "form[target] = m.predict_proba(A[n:])[:, 1]",
    "probability": "form[target] = m.predict_proba(A[n:])[:, 1]",
    "probabilities": "form[m.classes_.astype(str)] = m.predict_proba(A[n:])",
    "number": "form[target] = m.predict(A[n:])",
    "nonnegative": "form[target] = m.predict(A[n:]).clip(0)",
}


@dataclass(frozen=True)
class Sight:
    """What an expert can see of a task: columns of words, dates and codes, and other tables."""

    form: str
    classes: bool
    words: int
    date: bool
    code: bool
    side: bool


@dataclass(frozen=True)
class Recipe:
    """One program in the making."""

    rows: tuple[Snippet, ...]
    cells: Snippet
    faults: tuple[Snippet, ...]
    features: tuple[Snippet, ...]
    model: Model
    logs: bool
    prints: bool
    mistake: str | None = None


class Experts:
    """Plays programs of plain tables, another draw for every episode."""

    def __init__(self, argument: str, section: PolicySection | None = None) -> None:
        if argument != "tables":
            raise UsageError(f"policy experts:{argument}: there is only experts:tables")
        self.name = f"experts:{argument}"

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return the expert of an episode; `UsageError` for a task that is no plain table."""
        return _Expert(look(task), np.random.default_rng(seed))

    def close(self) -> None:
        """Do nothing: experts share nothing."""


def look(task: Task) -> Sight:
    """Return what the header, the first row and the names of the files of a task tell."""
    form = form_of(task.card)
    if task.card.modality != "tabular" or form not in _FORMS:
        raise UsageError(f"{task.id}: the policy experts:tables knows plain tables only")
    table = read_table((task.public / "train.csv").read_bytes())
    row = table.rows[0][1:-1]
    words = [cell for cell in row if re.match(r"-?\d+([.,]\d+)?\b(?!-)", cell) is None and cell]
    others = {path.name for path in task.public.glob("*.csv")}
    classes = form in ("label", "score", "probability", "probabilities")
    return Sight(
        form=form,
        classes=classes,
        words=len(words),
        date=any(_DATE.match(cell) for cell in words),
        code=any(_CODE.fullmatch(cell) for cell in words),
        side=bool(others - {"train.csv", "test.csv", "sample_submission.csv"}),
    )


def form_of(card: TaskCard) -> str:
    """Return the kind of submission that the metric of a task wants."""
    return METRICS.get(card.metric.name).kind.name


def draw(sight: Sight, rng: np.random.Generator) -> Recipe:
    """Draw a recipe among those that the columns permit."""
    features = [_one(snippets.NUMBERS, rng)]
    for kind, there in (
        (snippets.DATES, sight.date),
        (snippets.CODES, sight.code),
        (snippets.PLACES, sight.side),
        (snippets.WORDS, sight.words > (sight.date or sight.code)),
    ):
        if there and rng.random() < 0.6:
            features.append(_one(kind, rng))
    known, slow = snippets.REGRESSORS, snippets.SLOW_REGRESSOR
    if sight.classes:
        known, slow = snippets.CLASSIFIERS, snippets.SLOW_CLASSIFIER
    faults = [one for one in snippets.FAULTS if one.words <= sight.words]
    chosen = [one for one in faults if rng.random() < 0.22 * one.weight]
    return Recipe(
        rows=snippets.ROWS if rng.random() < 0.08 else (),
        cells=_one(snippets.CELLS, rng),
        faults=tuple(chosen),
        features=tuple(features),
        model=slow if rng.random() < _SLOW else _one(known, rng),
        logs=not sight.classes and rng.random() < _VALUE_LOGS,
        prints=bool(rng.random() < _PRINTS),
        mistake=str(rng.choice(_MISTAKES)) if rng.random() < _MISTAKEN else None,
    )


def program(recipe: Recipe, form: str) -> str:
    """Return the program of a recipe, with its mistake if it has one."""
    model, made = recipe.model, f"{recipe.model.name}({recipe.model.arguments})"
    made = model.wrap.format(made)
    learn = [f"m = {made}"]
    answer = _FORMS[form]
    if recipe.logs:
        learn.insert(0, "y = np.log(y.clip(lower=0.001))")
        answer = answer.replace("m.predict(A[n:])", "np.exp(m.predict(A[n:]))")
    if recipe.prints:
        learn.append("from sklearn.model_selection import cross_val_score")
        learn.append("print(cross_val_score(m, A[:n], y, cv=3).mean().round(3))")
    body = [
        'train = pd.read_csv("input/train.csv")',
        'test = pd.read_csv("input/test.csv")',
        *[one.code for one in recipe.rows],
        "key, target = train.columns[0], train.columns[-1]",
        "y, n = train[target], len(train)",
        "D = pd.concat([train, test], ignore_index=True)[test.columns].drop(columns=key)",
        recipe.cells.code,
        "X = D.select_dtypes('number')",
        "W = [c for c in D if c not in X]",
        *[one.code for one in recipe.faults],
        "Z = ((X - X.mean()) / X.std()).fillna(0)",
        "F = []",
        *[one.code for one in recipe.features],
        "A = np.column_stack(F).astype(float)",
        *learn,
        "m.fit(A[:n], y)",
        "form = test[[key]].copy()",
        answer,
        'form.to_csv("submission.csv", index=False)',
    ]
    code = "\n".join(line for line in body if line)
    return _mistaken(f"{_imports(code, model)}\n{code}", recipe.mistake)


def thought(recipe: Recipe) -> str:
    """Return what an expert says of a recipe: the names of its parts."""
    parts = [one.say for one in (*recipe.rows, recipe.cells, *recipe.faults) if one.code]
    parts += [one.say for one in recipe.features]
    return ", ".join([*parts, ("log " if recipe.logs else "") + recipe.model.say])


class _Expert:
    """One episode: a program, its repair, perhaps another one, and the end."""

    def __init__(self, sight: Sight, rng: np.random.Generator) -> None:
        self._sight, self._rng = sight, rng
        self._recipe = draw(sight, rng)
        self._valid = False

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Answer the last observation."""
        seen = messages[-1].content
        first = len(messages) == 2
        self._valid |= "submission.csv: valid" in seen
        left = re.search(r"replies left: (\d+)", seen)
        last = left is not None and int(left[1]) <= 1
        if first:
            return Completion(self._run(thought(self._recipe)))
        if self._valid and (last or self._rng.random() > _RESTLESS):
            return Completion("<think>valid, done</think>\n<submit/>")
        if "submission.csv: valid" in seen:
            self._recipe = draw(self._sight, self._rng)
            return Completion(self._run(thought(self._recipe)))
        self._mend(seen)
        return Completion(self._run("mend: " + thought(self._recipe)))

    def _run(self, said: str) -> str:
        code = program(self._recipe, self._sight.form)
        if self._rng.random() < _MALFORMED:
            return code[:60]
        return f"<think>{said}</think>\n```python\n{code}\n```"

    def _mend(self, seen: str) -> None:
        """Take the mistake out; without one, take the features back to what always runs."""
        recipe = self._recipe
        known = snippets.CLASSIFIERS if self._sight.classes else snippets.REGRESSORS
        if "time limit" in seen:
            self._recipe = replace(recipe, model=_one(known, self._rng), mistake=None)
        elif recipe.mistake is not None or "Nothing was run" in seen:
            self._recipe = replace(recipe, mistake=None)
        else:
            plain = snippets.NUMBERS[0]
            self._recipe = replace(recipe, rows=(), faults=(), features=(plain,), logs=False)


def _one(choices: Sequence[Part], rng: np.random.Generator) -> Part:
    weights = np.array([one.weight for one in choices])
    return choices[int(rng.choice(len(choices), p=weights / weights.sum()))]


def _imports(code: str, model: Model) -> str:
    lines = []
    if "combinations(" in code:
        lines.append("from itertools import combinations")
    if "glob(" in code:
        lines.append("from glob import glob")
    lines += ["import numpy as np", "import pandas as pd"]
    lines.append(f"from sklearn.{model.home} import {model.name}")
    if "GridSearchCV(" in code:
        lines.append("from sklearn.model_selection import GridSearchCV")
    if "make_pipeline(" in code:
        lines.append("from sklearn.pipeline import make_pipeline")
        lines.append("from sklearn.preprocessing import StandardScaler")
    return "\n".join(lines)


def _mistaken(code: str, mistake: str | None) -> str:
    """Return a program with a mistake that people make."""
    changes = {
        "file": ('"submission.csv"', '"output.csv"'),
        "column": ("form[", "form['prediction'] = form["),
        "ids": ("form = test[[key]]", "form = train[[key]]"),
        "import": ("import numpy as np\n", ""),
        "name": ("A[n:]", "A_test"),
        "bracket": ("m.fit(A[:n], y)", "m.fit(A[:n], y"),
    }
    if mistake is None:
        return code
    return code.replace(*changes[mistake])


POLICIES.add("experts", Experts)
