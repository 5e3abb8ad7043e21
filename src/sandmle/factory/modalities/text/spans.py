"""Programs that copy consecutive words out of a text: a model of single words, then the best run.

`features(frame)` of a solution returns for each text an array (words, k); words are what blanks
separate. `model` is "linear" or "trees".
"""

from collections.abc import Sequence

from sandmle.factory.family import Solution
from sandmle.factory.ladder import WRITE, Goal, Script, program
from sandmle.factory.story import TEXTS

_MODELS = {
    "linear": "make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
    "trees": "ExtraTreesClassifier(40, min_samples_leaf=2, random_state=0)",
}
# of words as such, which are hundreds of columns that are nearly always 0
_GENERIC = {
    "linear": "make_pipeline(words, LogisticRegression(max_iter=1000))",
    "forest": "make_pipeline(words, RandomForestClassifier(15, max_depth=12, random_state=0))",
}


def generic_rungs(goal: Goal) -> list[Script]:
    """Return the dummy, the first words, and models of each word and its neighbours."""
    text = next(column.name for column in goal.columns if column.kind in TEXTS)
    look, first = _LOOK.format(text=text), _FIRST.format(text=text)
    rungs = [
        Script(0, "dummy", "dummy", program(goal, [_COMMONEST, WRITE], "")),
        Script(10, "beginning", "generic", program(goal, [first, WRITE])),
    ]
    for order, (name, model) in zip((20, 40), _GENERIC.items(), strict=True):
        code = _whole(goal, [look], f"clf = {model}")
        rungs.append(Script(order, name, "generic", code))
    models = "\n".join(["models = [", *(f"    {model}," for model in _GENERIC.values()), "]"])
    tuned = _whole(goal, [look], f"{models}\n{_PICK}")
    return [*rungs, Script(60, "tuned", "generic", tuned)]


def reference(goal: Goal, opening: Sequence[str], solution: Solution, name: str) -> Script:
    """Return the reference; `opening` undoes the mutations."""
    body = [*opening, solution.features.strip()]
    code = _whole(goal, body, f"clf = {_MODELS[solution.model]}")
    return Script(90, name, "reference", code)


def _whole(goal: Goal, body: Sequence[str], model: str) -> str:
    """Assemble a program that learns which words are inside, and copies the best run of them."""
    text = next(column.name for column in goal.columns if column.kind in TEXTS)
    learn = _LEARN.format(text=text, model=model)
    return program(goal, [*body, _SPANS, f"{learn}\n{WRITE}"])


_COMMONEST = """\
# the commonest of all answers
prediction = pd.DataFrame({TARGET: [train[TARGET].mode()[0]] * len(test)})"""

_FIRST = """\
# as many words from the beginning as an answer has on average
length = round(train[TARGET].str.split().str.len().mean())
prediction = pd.DataFrame({{TARGET: test["{text}"].str.split().str[:length].str.join(" ")}})"""

_LOOK = '''\
words = OneHotEncoder(handle_unknown="ignore", min_frequency=6)


def features(frame):
    """Each word with the three before it and the three after it."""
    found = []
    for text in frame["{text}"]:
        near = ["", "", "", *text.lower().split(), "", "", ""]
        found.append(np.array([near[i : i + 7] for i in range(len(near) - 6)], dtype=object))
    return found'''

_SPANS = '''\
MARKS = ".,;:!?()"  # around words, and no part of them


def inside(text, span):
    """Which words of a text are those of a span: as many together as share most words with it."""
    words, wanted = [word.strip(MARKS) for word in text.lower().split()], span.lower().split()
    shared = [len({*words[i : i + len(wanted)]} & {*wanted}) for i in range(len(words))]
    marks, start = np.zeros(len(words)), int(np.argmax(shared))
    marks[start : start + len(wanted)] = 1
    return marks


def best_run(text, chances):
    """The consecutive words whose chances are most, in all, above half the highest of the text."""
    words, best, start, total = text.split(), (-np.inf, 0, 0), 0, 0.0
    for i, excess in enumerate(chances - chances.max() / 2):
        start, total = (start, total + excess) if total > 0 else (i, excess)
        best = max(best, (total, start, i + 1))
    return " ".join(word.strip(MARKS) for word in words[best[1] : best[2]])'''

_LEARN = """\
X, X_test = features(train), features(test)
y = np.concatenate([inside(*row) for row in zip(train["{text}"], train[TARGET])])
{model}
clf.fit(np.concatenate(X), y)
chances = clf.predict_proba(np.concatenate(X_test))[:, 1]
pieces = np.split(chances, np.cumsum([len(x) for x in X_test])[:-1])
copied = [best_run(*row) for row in zip(test["{text}"], pieces)]
prediction = pd.DataFrame({{TARGET: copied}})"""

_PICK = """\
scores = [
    cross_val_score(model, np.concatenate(X), y, cv=2, scoring="neg_log_loss").mean()
    for model in models
]
print("cross-validation:", [round(score, 3) for score in scores])
clf = models[scores.index(max(scores))]"""
