"""Small made-up inputs for the scripts in `scripts/`, one folder for each modality.

    python benchmarks/data.py FOLDER

Every folder has a train.csv, a test.csv and a sample_submission.csv; the same numbers come out
every time.
"""

import csv
import struct
import sys
import wave
import zlib
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np

SEED = 20260
TEST_ROWS = 60

SHAPES = ("bars", "cross", "ring")
FACTIONS = ("harbour", "mill", "orchard")
RATE = 8000

COMMON = (
    "I have been a customer for {n} years.",
    "Please let me know what to do next.",
    "This is the {k} time I write about it.",
    "My number is {n}{n}, in case you need it.",
    "I would be glad of an answer this week.",
    "Thank you for your help so far!",
    "Your colleague was friendly, but could not help.",
)
MESSAGES = {
    "billing": (
        "The {m} invoice shows {n} euros more than we agreed.",
        "I was charged twice for the order of {m}.",
        "My card was declined although the account is in credit.",
        "Where can I change the payment method for the subscription?",
        "The refund promised in {m} has not reached my account.",
        "Could the amount be split over {n} months?",
        "There is a fee on the statement that I do not recognise.",
    ),
    "delivery": (
        "The parcel should have arrived {n} days ago.",
        "The courier left the box at the wrong address.",
        "Tracking has not moved since {m}.",
        "Two of the {n} items were missing from the package.",
        "Can the order be sent to another address?",
        "The box was torn and the contents were wet.",
        "Nobody rang, yet the driver noted that I was not at home.",
    ),
    "technical": (
        "The app closes {n} seconds after I open it.",
        "Since the update in {m} the screen stays black.",
        "I cannot log in, the password reset mail never comes.",
        "The device loses its connection every {n} minutes.",
        "An error with code {n} appears when I press start.",
        "The battery is empty after {n} hours.",
        "Installing the new version stops half way.",
    ),
}


def write_inputs(folder: Path) -> None:
    writers = {
        "tabular": _tabular,
        "image": _image,
        "text": _text,
        "audio": _audio,
        "graph": _graph,
    }
    for stream, (modality, write) in enumerate(writers.items()):
        target = folder / modality
        target.mkdir(parents=True, exist_ok=True)
        write(target, np.random.default_rng([SEED, stream]))


def _tabular(folder: Path, rng: np.random.Generator) -> None:
    """Heat pumps, and whether each had a fault within a year."""
    rows = []
    for key in _ids(rng, 140 + TEST_ROWS):
        installed = date(2016, 1, 4) + timedelta(days=int(rng.integers(2900)))
        maker = str(rng.choice(["Alvik", "Boreas", "Corin", "Dunmore"], p=[0.35, 0.3, 0.2, 0.15]))
        region = str(rng.choice(["coast", "hills", "plain"]))
        insulated = "yes" if rng.random() < 0.6 else "no"
        area = rng.lognormal(4.8, 0.35)
        hours = rng.gamma(4.0, 600.0)
        pressure = rng.normal(28.0, 2.5)
        noise = 42.0 + 0.9 * abs(pressure - 28.0) + rng.normal(0.0, 2.0)
        service = int(rng.integers(5, 720))
        logit = (
            0.9 * (hours - 2400.0) / 1200.0
            + 0.35 * (abs(pressure - 28.0) - 2.0)
            + 0.004 * (service - 360) * (1.0 if maker in {"Boreas", "Dunmore"} else 0.3)
            + 0.5 * (insulated == "no") * (area - 125.0) / 45.0
            + 0.6 * (region == "coast")
            - 0.0004 * (installed - date(2020, 1, 1)).days
        )
        fault = int(rng.random() < 1.0 / (1.0 + np.exp(-1.6 * logit)))
        numbers = [f"{area:.1f}", f"{hours:.0f}", f"{pressure:.2f}", f"{noise:.1f}"]
        numbers = ["" if rng.random() < 0.04 else number for number in numbers]
        known = [installed.isoformat(), maker, region, insulated]
        rows.append([key, *known, *numbers, service, fault])
    columns = ["id", "installed", "maker", "region", "insulated"]
    columns += ["floor_area", "compressor_hours", "pressure", "noise_db", "days_since_service"]
    _write_split(folder, columns, "fault", rows, default=0.5)


def _image(folder: Path, rng: np.random.Generator) -> None:
    """Grey 28 x 28 pictures of one of three shapes."""
    images = folder / "images"
    images.mkdir(exist_ok=True)
    y, x = np.mgrid[0:28, 0:28].astype(float)
    rows = []
    for key in _ids(rng, 120 + TEST_ROWS):
        shape = str(rng.choice(SHAPES))
        centre_x, centre_y = rng.uniform(10.0, 17.0, size=2)
        size = rng.uniform(5.0, 9.0)
        angle = rng.uniform(-0.4, 0.4)
        u = (x - centre_x) * np.cos(angle) + (y - centre_y) * np.sin(angle)
        v = (y - centre_y) * np.cos(angle) - (x - centre_x) * np.sin(angle)
        inside = (abs(u) < size) & (abs(v) < size)
        if shape == "ring":
            ink = abs(np.hypot(u, v) - size * 0.8) < 1.6
        elif shape == "cross":
            ink = inside & ((abs(u) < 1.6) | (abs(v) < 1.6))
        else:
            ink = inside & (np.mod(v + size, 5.0) < 2.2)
        grey = rng.uniform(30, 80) + rng.uniform(70, 150) * ink + rng.normal(0.0, 28.0, ink.shape)
        _write_png(images / f"{key}.png", np.clip(grey, 0, 255).astype(np.uint8))
        rows.append([key, shape])
    _write_split(folder, ["id"], "shape", rows, default=SHAPES[0])


def _text(folder: Path, rng: np.random.Generator) -> None:
    """Messages to a shop, and the queue that each belongs to."""
    months = ("January", "March", "May", "July", "September", "November")
    queues = sorted(MESSAGES)
    rows = []
    for key in _ids(rng, 150 + TEST_ROWS):
        queue = str(rng.choice(queues))
        sentences = [str(rng.choice(MESSAGES[queue])), *map(str, rng.choice(COMMON, 2, False))]
        if rng.random() < 0.4:
            sentences.append(str(rng.choice(MESSAGES[queue])))
        if rng.random() < 0.25:
            sentences.append(str(rng.choice(MESSAGES[str(rng.choice(queues))])))
        text = " ".join(str(sentence) for sentence in rng.permutation(sentences))
        text = text.replace("{n}", str(rng.integers(2, 40))).replace("{m}", str(rng.choice(months)))
        text = text.replace("{k}", str(rng.choice(["second", "third", "fourth"])))
        words = [word for word in text.split() if rng.random() > 0.15]
        rows.append([key, " ".join(words), queue])
    _write_split(folder, ["id", "text"], "queue", rows, default=queues[0])


def _audio(folder: Path, rng: np.random.Generator) -> None:
    """Half a second of a fan, and its revolutions per minute."""
    clips = folder / "clips"
    clips.mkdir(exist_ok=True)
    seconds = np.arange(RATE // 2) / RATE
    rows = []
    for key in _ids(rng, 110 + TEST_ROWS):
        rpm = rng.uniform(900.0, 3600.0)
        base = rpm / 60.0 * 5  # five blades pass the microphone in one turn
        sound = sum(
            rng.uniform(0.3, 1.0) / k * np.sin(2 * np.pi * (k * base * seconds + rng.random()))
            for k in range(1, 6)
        )
        sound = sound + 0.3 * np.sin(2 * np.pi * (rpm / 60.0 * seconds + rng.random()))
        sound = sound + rng.uniform(0.2, 0.9) * rng.standard_normal(seconds.size)
        sound *= rng.uniform(0.2, 0.9) / abs(sound).max()
        with wave.open(str(clips / f"{key}.wav"), "wb") as clip:
            clip.setnchannels(1)
            clip.setsampwidth(2)
            clip.setframerate(RATE)
            clip.writeframes((32767 * sound).round().astype("<i2").tobytes())
        rows.append([key, f"{rpm:.0f}"])
    _write_split(folder, ["id"], "rpm", rows, default=2250)


def _graph(folder: Path, rng: np.random.Generator) -> None:
    """People who trade with each other, and the faction that each belongs to."""
    ids = _ids(rng, 110 + TEST_ROWS)
    faction = rng.integers(len(FACTIONS), size=len(ids))
    nodes, edges = [], []
    for i, key in enumerate(ids):
        age = rng.normal(38.0 + 5.0 * (faction[i] == 1), 9.0)
        trades = rng.poisson(6.0 + 4.0 * (faction[i] == 2))
        nodes.append([key, f"{max(age, 18.0):.0f}", int(trades), f"{rng.gamma(2.0, 400.0):.2f}"])
        for j in range(i):
            if rng.random() < (0.07 if faction[i] == faction[j] else 0.014):
                edges.append([key, ids[j], int(rng.integers(1, 6))])
    _write_csv(folder / "nodes.csv", ["id", "age", "trades", "balance"], nodes)
    _write_csv(folder / "edges.csv", ["source", "target", "weight"], edges)
    rows = [[key, FACTIONS[k]] for key, k in zip(ids, faction, strict=True)]
    _write_split(folder, ["id"], "faction", rows, default=FACTIONS[0])


def _ids(rng: np.random.Generator, count: int) -> list[str]:
    letters = np.array(list("bcdfghjkmnpqrstvwxz"))
    symbols = np.array(list("bcdfghjkmnpqrstvwxz23456789"))
    found: dict[str, None] = {}
    while len(found) < count:
        found[str(rng.choice(letters)) + "".join(rng.choice(symbols, size=7))] = None
    return list(found)


def _write_split(
    folder: Path, columns: Sequence[str], target: str, rows: Sequence[Sequence], default: object
) -> None:
    train, test = rows[:-TEST_ROWS], rows[-TEST_ROWS:]
    _write_csv(folder / "train.csv", [*columns, target], train)
    _write_csv(folder / "test.csv", columns, [row[:-1] for row in test])
    sample = [[row[0], default] for row in test]
    _write_csv(folder / "sample_submission.csv", ["id", target], sample)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _write_png(path: Path, grey: np.ndarray) -> None:
    try:
        from PIL import Image
    except ImportError:
        path.write_bytes(_png(grey))
    else:
        Image.fromarray(grey).save(path)


def _png(grey: np.ndarray) -> bytes:
    """An 8-bit grey PNG, for where Pillow is not installed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width = grey.shape
    lines = np.zeros((height, width + 1), np.uint8)  # every line starts with filter type 0
    lines[:, 1:] = grey
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes()))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    write_inputs(Path(sys.argv[1]))
