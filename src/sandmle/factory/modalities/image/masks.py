"""Programs for regions of pictures: a model of single pixels, smoothed, above a cut.

`features(frame)` of a solution returns float32 (n, height, width, k), `model` is "linear" or
"trees". A model learns from some pixels of three quarters of the training pictures; the others
say above which chance a pixel is taken to be inside.
"""

from collections.abc import Sequence

from sandmle.factory.family import Solution
from sandmle.factory.ladder import WRITE, Goal, Script, program

_MODELS = {
    "linear": "make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
    "trees": "ExtraTreesClassifier(30, max_depth=10, min_samples_leaf=5, random_state=0)",
    "forest": "RandomForestClassifier(20, max_depth=8, min_samples_leaf=5, random_state=0)",
}


def generic_rungs(goal: Goal) -> list[Script]:
    """Return the dummy, brightness alone, and models of brightness and its surroundings."""
    picture = next(column.name for column in goal.columns if column.kind == "image")
    look = _LOOK.format(picture=picture)
    linear, forest = _MODELS["linear"], _MODELS["forest"]
    return [
        Script(0, "dummy", "dummy", _whole(goal, [_OFTEN], load="")),
        Script(10, "brightness", "generic", _whole(goal, [_OTSU.format(picture=picture)])),
        Script(20, "linear", "generic", _whole(goal, [look, _learn(linear)])),
        Script(40, "forest", "generic", _whole(goal, [look, _learn(forest)])),
        Script(60, "tuned", "generic", _whole(goal, [look, _pick([linear, forest])])),
    ]


def reference(goal: Goal, opening: Sequence[str], solution: Solution, name: str) -> Script:
    """Return the reference; `opening` undoes the mutations."""
    learn = _learn(_MODELS[solution.model])
    code = _whole(goal, [solution.features.strip(), learn], opening)
    return Script(90, name, "reference", code)


def _whole(
    goal: Goal, body: Sequence[str], opening: Sequence[str] = (), load: str | None = None
) -> str:
    """Assemble a program that reads the masks, runs `body`, and writes `regions`."""
    height, width = goal.shape or (0, 0)
    masks = _MASKS.format(height=height, width=width)
    return program(goal, [*opening, masks, *body, f"{_WRITE}\n{WRITE}"], load)


def _learn(model: str) -> str:
    return f"{_LEARN}\n{_ONE.format(model=model)}"


def _pick(models: Sequence[str]) -> str:
    lines = "\n".join(f"    {model}," for model in models)
    return f"{_LEARN}\n{_PICK.format(models=lines)}"


_MASKS = '''\
HEIGHT, WIDTH = {height}, {width}


def read_mask(cell):
    """Run lengths, counted down the columns from 1, as true and false (height, width)."""
    flat, numbers = np.zeros(HEIGHT * WIDTH, dtype=bool), np.array(cell.split(), dtype=int)
    for start, length in zip(numbers[::2] - 1, numbers[1::2]):
        flat[start : start + length] = True
    return flat.reshape(WIDTH, HEIGHT).T


def dice(masks, others):
    shared, sizes = (masks & others).sum(axis=(1, 2)), (masks.sum((1, 2)) + others.sum((1, 2)))
    return (2 * shared / np.maximum(sizes, 1)).mean()


truth = np.stack([read_mask(cell) for cell in train[TARGET].fillna("")])'''

_WRITE = """\
cells = []
for region in regions:
    edges = np.flatnonzero(np.diff(np.r_[0, region.T.ravel().astype(int), 0]))
    cells.append(" ".join(f"{a + 1} {b - a}" for a, b in zip(edges[::2], edges[1::2])))
prediction = pd.DataFrame({TARGET: cells})"""

_OFTEN = """\
# the pixels that are most often inside
often = truth.mean(axis=0)
cut = max(np.quantile(often, np.arange(10) / 10), key=lambda c: dice((often >= c)[None], truth))
regions = [often >= cut] * len(test)"""

_OTSU = '''\
def split(pictures):
    """Brightness above the value that splits a picture into the two most even parts."""
    masks = []
    for picture in pictures:
        grey = picture.mean(axis=2) if picture.ndim == 3 else picture
        smooth = ndimage.gaussian_filter(grey.astype(float), 1.5)
        cuts = np.quantile(smooth, np.arange(0.05, 1, 0.05))
        uneven = [np.var(smooth[smooth > c]) * (smooth > c).mean()
                  + np.var(smooth[smooth <= c]) * (smooth <= c).mean() for c in cuts]
        masks.append(smooth > cuts[np.argmin(uneven)])
    return np.stack(masks)


found, regions = split(train["{picture}"]), split(test["{picture}"])
if dice(~found, truth) > dice(found, truth):
    regions = ~regions'''

_LOOK = '''\
def features(frame):
    """Each channel of each pixel, its means and spreads around, and how steep it is there."""
    x = np.stack(frame["{picture}"]).astype(np.float32)
    columns = []
    for channel in np.moveaxis(x.reshape(*x.shape[:3], -1), 3, 0):
        around = [ndimage.gaussian_filter(channel, (0, k, k)) for k in (1, 2, 4)]
        squares = ndimage.gaussian_filter(channel**2, (0, 4, 4))
        spread = np.sqrt(np.maximum(squares - around[2] ** 2, 0))
        steep = np.hypot(*np.gradient(around[0], axis=(1, 2)))
        columns += [channel, *around, spread, steep]
    return np.stack(columns, axis=3)'''

_LEARN = '''\
def halved(x):
    """Means of 2 x 2 pixels, (n, height / 2, width / 2, k)."""
    return x.reshape(len(x), HEIGHT // 2, 2, WIDTH // 2, 2, -1).mean(axis=(2, 4))


def chances(model, x, smoothing=1):
    """The smoothed chance of each pixel to be inside."""
    p = model.predict_proba(x.reshape(-1, x.shape[-1]))[:, 1].reshape(x.shape[:3])
    return ndimage.gaussian_filter(p.repeat(2, axis=1).repeat(2, axis=2), (0, smoothing, smoothing))


X, X_test, y = halved(features(train)), halved(features(test)), halved(truth)[..., 0] > 0.5
held = np.arange(len(train)) % 4 == 0
pixels = np.random.default_rng(0).permutation(y[~held].size)[:15000]
known, inside = X[~held].reshape(-1, X.shape[-1])[pixels], y[~held].ravel()[pixels]
cuts = np.arange(1, 15) * 0.05'''

_ONE = """\
clf = {model}
clf.fit(known, inside)
p = chances(clf, X[held])
cut = max(cuts, key=lambda c: dice(p > c, truth[held]))
regions = chances(clf, X_test) > cut"""

_PICK = """\
tried = []
for clf in [
{models}
]:
    clf.fit(known, inside)
    for smoothing in (1, 2, 3):
        p = chances(clf, X[held], smoothing)
        tried += [(dice(p > cut, truth[held]), cut, smoothing, clf) for cut in cuts]
score, cut, smoothing, clf = max(tried, key=lambda one: one[0])
print(f"on held-out pictures: {{score:.3f}}")
regions = chances(clf, X_test, smoothing) > cut"""
