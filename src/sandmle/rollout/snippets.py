"""Lines that the scripted experts put their programs together from.

None of them names a column of a task: they find their columns by type and place, as a program does
that somebody wrote once and uses again. So most of them run on any table, and few of them help. A
snippet that finds nothing of its kind fails, as it would for anybody.

In all of them `D` holds the rows of train and test below each other without id and target, `n` of
them from train, `W` the names of the columns of words, `X` the numbers, `Z` the same standardised
and without gaps, and `F` the features so far.
"""

from typing import NamedTuple


class Snippet(NamedTuple):
    """`say` names it in a thought; `weight` is how often it is drawn beside others of its kind.

    `words`: how many columns of words it needs at least, as far as somebody can tell who has seen
    one row.
    """

    say: str
    code: str
    weight: float = 1.0
    words: int = 0


class Model(NamedTuple):
    """An estimator: where it is imported from, and how it is made."""

    say: str
    home: str
    name: str
    arguments: str
    weight: float = 1.0
    wrap: str = "{}"


# what is done to the rows before anything else
ROWS = (
    Snippet(
        "last entries",
        "train = train.sort_values(test.columns[-1])\n"
        'train = train.drop_duplicates(list(test.columns[1:-1]), keep="last")',
    ),
)

# how cells become numbers
CELLS = (
    Snippet("numbers as they are", "", 1.0),
    Snippet(
        "cells",
        "for c in D.select_dtypes(exclude='number'):\n"
        '    cell = D[c].str.replace(",", ".").str.extract(r"^(-?[\\d.]+)( [^\\d]+)?$")[0]\n'
        "    if cell.notna().mean() > 0.5:\n"
        "        D[c] = cell.astype(float)",
        1.6,
    ),
)

# faults of numbers
FAULTS = (
    Snippet("sentinels", "X = X.replace([-999, -9999], np.nan)", 1.5),
    Snippet("spikes", "X = X.where((X - X.median()).abs() < 9 * (X - X.median()).abs().median())"),
    Snippet("powers", "X = X / 10 ** np.log10((X / X.median()).clip(lower=1)).round()"),
    Snippet("clipping", "X = X.clip(X.quantile(0.02), X.quantile(0.98), axis=1)"),
    Snippet("devices", "X = X - X.groupby(D[W[-1]]).transform('mean')", 0.7, words=1),
)

# features of numbers alone
NUMBERS = (
    Snippet("plain", "F.append(Z)", 5.0),
    Snippet("squares", "F += [Z, Z ** 2]"),
    Snippet("sizes", "F += [Z, Z.abs()]"),
    Snippet("products", "F += [Z] + [Z[a] * Z[b] for a, b in combinations(Z, 2)]", 0.8),
    Snippet(
        "logs",
        "L = np.log(X.clip(lower=0.001))\nF.append(((L - L.mean()) / L.std()).fillna(0))",
        0.8,
    ),
    Snippet(
        "ratios",
        "L = np.log(X.clip(lower=0.001))\nL = ((L - L.mean()) / L.std()).fillna(0)\n"
        "F += [L] + [L[a] - L[b] for a, b in combinations(L, 2)]",
        0.6,
    ),
    Snippet(
        "gaps and maxima",
        "S = ((X - X.mean()) / X.std().median()).fillna(0)\n"
        "F += [Z] + [(S[a] - S[b]).abs() for a, b in combinations(S, 2)]\n"
        "F += [S[[a, b]].max(axis=1) for a, b in combinations(S, 2)]",
        0.6,
    ),
    Snippet("ranks", "F.append(Z.rank(pct=True))"),
    Snippet(
        "angles",
        "u, v = Z.iloc[:, 0], Z.iloc[:, 1]\nF += [Z, np.hypot(u, v), np.arctan2(v, u)]",
        0.6,
    ),
    Snippet(
        "spirals",
        "u, v = Z.iloc[:, 0], Z.iloc[:, 1]\nr, a = np.hypot(u, v), np.arctan2(v, u)\n"
        "for k in 1, 2, 3:\n"
        "    F += [f(k * (a + w * r)) for f in (np.sin, np.cos) for w in (-1, -0.5, 0, 0.5, 1)]",
        0.5,
    ),
    Snippet("empty cells", "F += [Z, X.isna() * 1]"),
    Snippet(
        "pairs of empty cells",
        "G = X.loc[:, X.isna().any()].isna()\nF.append(Z)\n"
        "F += [Z.mul((G[a] == G[b]) * 2 - 1, axis=0) for a, b in combinations(G, 2)]",
        0.5,
    ),
)

# features of words, dates, codes and other tables
WORDS = (
    Snippet("dummies", "F.append(pd.get_dummies(D[W]))", 2.0),
    Snippet("counts", "F += [D.groupby(c)[c].transform('size') for c in W]"),
    Snippet(
        "crosses",
        "F += [Z.mul(D[c] == v, axis=0) for c in W[-2:] for v in D[c].unique()]",
        0.7,
    ),
    Snippet(
        "group centring",
        "C = Z - Z.groupby(D[W[0]]).transform('mean')\nF += [C, C.abs()]",
        0.7,
    ),
    Snippet("group means", "F.append(Z.groupby(D[W[0]]).transform('mean'))"),
)
DATES = (
    Snippet("days", "t = pd.to_datetime(D[W[0]])\nF.append((t - t.min()).dt.days / 365)", 1.5),
    Snippet(
        "hours and weekdays",
        "t = pd.to_datetime(D[W[0]])\nF += [t.dt.hour, t.dt.dayofweek, t.dt.dayofyear]",
    ),
    Snippet(
        "trends",
        "t = pd.to_datetime(D[W[0]])\nd = (t - t.min()).dt.days / 365\n"
        "F += [d, Z.mul(d, axis=0), np.sin(2 * np.pi * d), np.cos(2 * np.pi * d)]",
        0.6,
    ),
    Snippet(
        "waves",
        "t = pd.to_datetime(D[W[0]])\nd = (t - t.min().normalize()) / pd.Timedelta(days=1)\n"
        "free = t.dt.dayofweek > 4\n"
        "for k in 1 / 365.25, 1, 2:\n"
        "    w = [f(2 * np.pi * k * d) for f in (np.sin, np.cos)]\n"
        "    F += [free, *w, *[one * free for one in w]]",
        0.6,
    ),
)
CODES = (
    Snippet("lengths", "F.append(D[W[0]].str.len())"),
    Snippet("first letters", "F.append(pd.get_dummies(D[W[0]].str[0]))"),
    Snippet(
        "letters of the code",
        "s = D[W[0]].str\nF += [s[i] == v for i in range(s.len().max()) for v in s[i].unique()]",
        0.6,
    ),
    Snippet(
        "halves of the code",
        "s = D[W[0]].str\nF += [s[i] >= '5' for i in range(s.len().max())]\n"
        "F += [Z.mul(s[-1] == v, axis=0) for v in s[-1].unique()]",
        0.6,
    ),
)
_SIDE = (
    'OWN = "trai", "test", "samp"\n'
    'side = pd.read_csv(next(p for p in glob("input/*.csv") if p[6:10] not in OWN))\n'
    'J = D.merge(side, on=side.columns[0], how="left")\n'
)
PLACES = (
    Snippet("joined table", f"{_SIDE}F.append(J[side.columns[-1]] / side.iloc[:, -1].max())"),
    Snippet(
        "distances",
        f'{_SIDE}a, b = J.filter(like="lat"), J.filter(like="lon")\n'
        "b = (b.iloc[:, 0] - b.iloc[:, 1]) * np.cos(np.radians(a.iloc[:, 0]))\n"
        "F.append(np.hypot(a.iloc[:, 0] - a.iloc[:, 1], b))",
        0.8,
    ),
    Snippet(
        "distances and capacity",
        f'{_SIDE}a, b = J.filter(like="lat"), J.filter(like="lon")\n'
        "b = (b.iloc[:, 0] - b.iloc[:, 1]) * np.cos(np.radians(a.iloc[:, 0]))\n"
        "q = J[side.columns[-1]] / side.iloc[:, -1].mean() - 1\n"
        "F += [np.hypot(a.iloc[:, 0] - a.iloc[:, 1], b), q, Z.mul(q, axis=0)]",
        0.6,
    ),
)

_SCALED = "make_pipeline(StandardScaler(), {})"
_GRID = "make_pipeline(StandardScaler(), GridSearchCV({}, {{'C': [0.03, 0.2, 1]}}, cv=4))"
_LINEAR, _ENSEMBLE = "linear_model", "ensemble"
CLASSIFIERS: tuple[Model, ...] = (
    Model("logistic", _LINEAR, "LogisticRegression", "max_iter=500", 1.5, _SCALED),
    Model("tuned logistic", _LINEAR, "LogisticRegression", "max_iter=500", 0.7, _GRID),
    Model(
        "lasso",
        _LINEAR,
        "LogisticRegression",
        "C=0.3, l1_ratio=1, solver='saga', max_iter=300",
        0.7,
        _SCALED,
    ),
    Model("forest", _ENSEMBLE, "RandomForestClassifier", "40, random_state=0", 1.5),
    Model("extra trees", _ENSEMBLE, "ExtraTreesClassifier", "60, random_state=0"),
    Model("boosting", _ENSEMBLE, "GradientBoostingClassifier", "n_estimators=50, subsample=0.8"),
    Model("neighbours", "neighbors", "KNeighborsClassifier", "7", 1.5, _SCALED),
    Model("bayes", "naive_bayes", "GaussianNB", "", 1.2),
    Model("tree", "tree", "DecisionTreeClassifier", "max_depth=3", 2.0),
)
REGRESSORS: tuple[Model, ...] = (
    Model("ridge", _LINEAR, "RidgeCV", "np.logspace(-2, 3, 11)", 1.2, _SCALED),
    Model("lasso", _LINEAR, "LassoCV", "cv=4", 0.8, _SCALED),
    Model("forest", _ENSEMBLE, "RandomForestRegressor", "40, random_state=0", 1.5),
    Model("extra trees", _ENSEMBLE, "ExtraTreesRegressor", "60, random_state=0"),
    Model("boosting", _ENSEMBLE, "GradientBoostingRegressor", "n_estimators=50, subsample=0.8"),
    Model("neighbours", "neighbors", "KNeighborsRegressor", "7", 1.5, _SCALED),
    Model("support vectors", "svm", "SVR", "C=3", 0.8, _SCALED),
    Model("tree", "tree", "DecisionTreeRegressor", "max_depth=3", 2.0),
)
# far too large for any time limit of a small machine: some experts have no patience with limits
_LARGE = "hidden_layer_sizes=(2000, 2000, 2000), tol=0, max_iter=99999"
SLOW_CLASSIFIER = Model("large network", "neural_network", "MLPClassifier", _LARGE)
SLOW_REGRESSOR = Model("large network", "neural_network", "MLPRegressor", _LARGE)
