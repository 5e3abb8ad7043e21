"""Programs for boxes in pictures: candidates are proposed, and a model says which are true.

`features(frame)` of a solution returns for each picture the candidates (m, 4), as x, y, width and
height, and what is known of them (m, k); `model` is "linear" or "trees". A candidate is true in
training if a true box has at least half of the union with it in common.
"""

from collections.abc import Sequence

from sandmle.factory.family import Solution
from sandmle.factory.ladder import WRITE, Goal, Script, program

_MODELS = {
    "linear": "make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
    "trees": "ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)",
    "forest": "RandomForestClassifier(60, random_state=0)",
}


def generic_rungs(goal: Goal) -> list[Script]:
    """Return the dummy, brightness alone, and models of what differs from its surroundings."""
    picture = next(column.name for column in goal.columns if column.kind == "image")
    look = _LOOK.format(picture=picture)
    linear, forest = _MODELS["linear"], _MODELS["forest"]
    return [
        Script(0, "dummy", "dummy", _whole(goal, [_USUAL], load="")),
        Script(10, "brightness", "generic", _whole(goal, [look, _LARGEST])),
        Script(20, "linear", "generic", _whole(goal, [look, _learn(linear)])),
        Script(40, "forest", "generic", _whole(goal, [look, _learn(forest)])),
        Script(60, "tuned", "generic", _whole(goal, [look, _LABEL, _pick([linear, forest])])),
    ]


def reference(goal: Goal, opening: Sequence[str], solution: Solution, name: str) -> Script:
    """Return the reference; `opening` undoes the mutations."""
    body = [solution.features.strip(), _learn(_MODELS[solution.model])]
    return Script(90, name, "reference", _whole(goal, body, opening))


def _whole(
    goal: Goal, body: Sequence[str], opening: Sequence[str] = (), load: str | None = None
) -> str:
    """Assemble a program that reads the boxes, runs `body`, and writes the surest of `found`."""
    boxes = _BOXES.format(most=goal.most)
    return program(goal, [*opening, boxes, *body, f"{_WRITE}\n{WRITE}"], load)


def _learn(model: str) -> str:
    return f"{_LABEL}\nclf = {model}\n{_FIT}"


def _pick(models: Sequence[str]) -> str:
    lines = "\n".join(f"    {model}," for model in models)
    return f"models = [\n{lines}\n]\n{_PICK}\n{_FIT}"


_BOXES = '''\
MOST = {most}


def overlap(boxes, others):
    """Intersection over union of all pairs of boxes."""
    first, second = boxes[:, None], others[None]
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., :2] + first[..., 2:], second[..., :2] + second[..., 2:])
    shared = (high - low).clip(0).prod(axis=2)
    return shared / (first[..., 2:].prod(axis=2) + second[..., 2:].prod(axis=2) - shared)


cells = train[TARGET].fillna("")
truth = [np.array(cell.split(), dtype=float).reshape(-1, 5)[:, 1:] for cell in cells]'''

_WRITE = """\
cells = []
for boxes, sure in found:
    kept = []
    for i in np.argsort(-sure, kind="stable"):
        if len(kept) < MOST and overlap(boxes[[i]], boxes[kept]).max(initial=0) < 0.3:
            kept.append(i)
    cells.append(" ".join(f"{sure[i]:.4f} " + " ".join(f"{v:g}" for v in boxes[i]) for i in kept))
prediction = pd.DataFrame({TARGET: cells})"""

_USUAL = """\
# one box of the usual size and place in every picture
usual = np.median(np.vstack(truth), axis=0)[None]
found = [(usual, np.ones(1))] * len(test)"""

_LARGEST = """\
# the larger, the surer
found = [(b, 1 - 1 / (1 + b[:, 2:].prod(axis=1))) for b, _ in features(test)]"""

_LABEL = """\
known, unknown = features(train), features(test)
X, X_test = (np.vstack([x for _, x in some]) for some in (known, unknown))
hits = [overlap(b, t).max(axis=1, initial=0) >= 0.5 for (b, _), t in zip(known, truth)]
y = np.concatenate(hits)"""

_PICK = """\
scores = [cross_val_score(m, X, y, cv=3, scoring="average_precision").mean() for m in models]
print("cross-validation:", [f"{score:.3f}" for score in scores])
clf = models[scores.index(max(scores))]"""

_FIT = """\
sure = clf.fit(X, y).predict_proba(X_test)[:, 1]
ends = np.cumsum([len(b) for b, _ in unknown])
found = [(b, part) for (b, _), part in zip(unknown, np.split(sure, ends[:-1]))]"""

_LOOK = '''\
def look(picture):
    """Boxes around what is lighter or darker than its surroundings: place, size, brightness."""
    grey = picture.mean(axis=2) if picture.ndim == 3 else picture.astype(float)
    rest = ndimage.gaussian_filter(grey, 1) - ndimage.gaussian_filter(grey, 12)
    boxes, rows = [], []
    for sign in (1, -1):
        parts, _ = ndimage.label(sign * rest > rest.std())
        for down, right in ndimage.find_objects(parts):
            height, width = down.stop - down.start, right.stop - right.start
            if min(height, width) >= 6:
                boxes.append([right.start, down.start, width, height])
                inside, full = grey[down, right], (parts[down, right] > 0).mean()
                rows.append([*boxes[-1], full, inside.mean(), inside.std(), grey.mean(), sign])
    return np.array(boxes, dtype=float).reshape(-1, 4), np.array(rows).reshape(-1, 9)


def features(frame):
    return [look(picture) for picture in frame["{picture}"]]'''
