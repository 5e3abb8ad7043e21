"""How a script reads a column that is more than a number or a word, and what anybody makes of it.

`LOADERS` put the content of files into the frames, so that remedies and features find pictures and
sounds where the paths were. `LOOKS` are the general features that the generic rungs learn from: a
small copy of a picture, the mean spectrum of a sound, the words of a text.
"""

from pathlib import Path
from typing import NamedTuple

from sandmle.factory.family import VariableKind


class Column(NamedTuple):
    """A column that needs loading or looking at."""

    name: str
    kind: VariableKind


def loading(columns: tuple[Column, ...], tables: tuple[str, ...] = ()) -> str:
    """Return the lines that load tables beside the frames, and every column of both frames.

    A table becomes a frame that has the name of its file.
    """
    kinds = {column.kind for column in columns} & LOADERS.keys()
    functions = [LOADERS[kind].strip() for kind in sorted(kinds)]
    lines = [
        f'    frame["{c.name}"] = [read_{c.kind}(cell) for cell in frame["{c.name}"]]'
        for c in columns
        if c.kind in LOADERS
    ]
    read = [f'{Path(path).stem} = pd.read_csv("input/{path}")' for path in tables]
    put = ["for frame in (train, test):", *lines] if lines else []
    return "\n\n\n".join(part for part in (*functions, "\n".join([*read, *put])) if part)


def looking(columns: tuple[Column, ...], look: str) -> str:
    """Return `view(frame)`: every column of a frame as numbers or words.

    `look` is the source of a function `look(frame)` for what is not in any column, or empty.
    """
    kinds = {column.kind for column in columns} & LOOKS.keys()
    functions = [LOOKS[kind].strip() for kind in sorted(kinds)]
    parts = [
        f'        pd.DataFrame(look_{c.kind}(frame["{c.name}"], train["{c.name}"]), '
        f'index=frame.index).add_prefix("{c.name}_"),'
        for c in columns
        if c.kind in LOOKS
    ]
    if look:
        functions.append(look.strip())
        parts.append('        pd.DataFrame(look(frame), index=frame.index).add_prefix("more_"),')
    names = [column.name for column in columns]
    view = "\n".join(
        [
            "def view(frame):",
            '    """Each row as numbers and words."""',
            "    parts = [",
            f"        tidy(frame.drop(columns={names})),",
            *parts,
            "    ]",
            "    return pd.concat(parts, axis=1)",
        ]
    )
    return "\n\n\n".join([*functions, view])


LOADERS: dict[VariableKind, str] = {
    "image": """
def read_image(path):
    return np.asarray(Image.open("input/" + path))
""",
    "frames": """
def read_frames(paths):
    return [np.asarray(Image.open("input/" + path)) for path in paths.split()]
""",
    "audio": '''
def read_audio(path):
    """The rate in samples a second, and the samples from -1 to 1."""
    with wave.open("input/" + path) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return file.getframerate(), samples / 32767
''',
    "document": """
def read_document(path):
    return open("input/" + path, encoding="utf-8").read()
""",
    "series": """
def read_series(cell):
    return np.array(cell.split(), dtype=float)
""",
    "plan": """
def read_plan(cell):
    return np.array(cell.split(), dtype=float)
""",
}

_PICTURES = '''
def describe(pictures):
    """A small copy, the brightness, and the directions of edges in 4 x 4 cells."""
    x = np.stack(pictures).astype(float) / 255
    grey = x if x.ndim == 3 else x.mean(axis=3)
    n, height, width = grey.shape
    small = grey.reshape(n, 8, height // 8, 8, width // 8).mean(axis=(2, 4)).reshape(n, -1)
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(down, right)
    direction = (np.arctan2(down, right) % np.pi / np.pi * 6).astype(int) % 6
    cells = [
        (strength * (direction == k)).reshape(n, 4, height // 4, 4, width // 4).sum(axis=(2, 4))
        for k in range(6)
    ]
    edges = np.stack(cells, axis=-1).reshape(n, -1)
    edges /= np.linalg.norm(edges, axis=1, keepdims=True) + 1e-9
    flat = x.reshape(n, height * width, -1)
    light = np.hstack([flat.mean(axis=1), flat.std(axis=1), *np.percentile(flat, (5, 50, 95), 1)])
    return np.hstack([small, edges, light])
'''

LOOKS: dict[VariableKind, str] = {
    "image": f"""
{_PICTURES.strip()}


def look_image(pictures, known):
    return describe(pictures)
""",
    "frames": f'''
{_PICTURES.strip()}


def look_frames(clips, known):
    """The first and the last picture, and how many there are."""
    first, last = describe([clip[0] for clip in clips]), describe([clip[-1] for clip in clips])
    return np.hstack([first, last, [[len(clip)] for clip in clips]])
''',
    "audio": '''
def look_audio(sounds, known):
    """Mean and spread of each band of the spectrum, loudness and zero crossings."""
    rows = []
    for rate, x in sounds:
        pieces = np.lib.stride_tricks.sliding_window_view(x, 256)[::128] * np.hanning(256)
        power = np.abs(np.fft.rfft(pieces, axis=1)) ** 2
        bands = [np.log(band.mean(axis=1) + 1e-6) for band in np.array_split(power, 24, axis=1)]
        means, spreads = np.mean(bands, axis=1), np.std(bands, axis=1)
        rows.append(np.r_[means, spreads, x.std(), np.mean(np.diff(np.sign(x)) != 0)])
    return np.array(rows)
''',
    "note": '''
def look_note(texts, known):
    """Words and pairs of words, weighted by how rare they are."""
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, max_features=400, sublinear_tf=True)
    return words.fit(known).transform(texts).toarray()
''',
    "document": '''
def look_document(texts, known):
    """Words, weighted by how rare they are; pairs of them would take long."""
    words = TfidfVectorizer(min_df=2, max_features=200, sublinear_tf=True)
    return words.fit(known).transform(texts).toarray()
''',
    "series": '''
def look_series(histories, known):
    """Mean levels of the last days and weeks, spread and trend, in logarithms."""
    x = np.log(np.stack(histories) + 1e-9)
    days = np.arange(x.shape[1]) - x.shape[1] / 2
    recent = [x[:, -k:].mean(axis=1) for k in (1, 7, 14, 28, x.shape[1])]
    return np.column_stack([*recent, x.std(axis=1), x @ days / (days @ days)])
''',
    "plan": '''
def look_plan(plans, known):
    """How many days are planned."""
    return np.array([[plan.sum()] for plan in plans])
''',
}
