"""Note and picture: a note names the part of the picture that counts, in words of the place.

The picture has four quarters with streaks of their own. Each quarter is called by a noun, and a
note, among other things, says by which of them the row is judged. Without the note the picture
shows both classes in different quarters; who learns which noun means which quarter sees the rule.
"""

from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    FamilyOf,
    Names,
    Outcome,
    Sample,
    Solution,
    Split,
    Variable,
)
from sandmle.factory.modalities.image.pixels import fibres, swell, to_bytes
from sandmle.types import Record

_HALF = 32  # pixels along a side of a quarter
_QUARTERS = ("upper left", "upper right", "lower left", "lower right")
_NOUNS = 10  # the first four may be those of the quarters, the others are only talked about
_TURN = 0.4  # radians by which a tilt differs from 45 degrees, at most
_FAINT = 0.7  # contrast of streaks whose tilt counts, compared with those whose pace does
_PERIODS = (4.4, 6.4)  # pixels from streak to streak: fine, coarse
# contrast, grain, share of labels that are wrong, share of notes that name a wrong noun as well,
# most sentences about another quarter; by level
_LEVELS = (
    (13.0, 11.0, 0.03, 0.2, 1),
    (12.5, 12.0, 0.04, 0.35, 1),
    (12.0, 13.0, 0.05, 0.5, 2),
    (11.5, 14.0, 0.06, 0.6, 2),
    (11.0, 15.0, 0.06, 0.7, 3),
)

_JUDGED = (
    "Please decide it by the {this}.", "What counts here is the {this}.",
    "It all hangs on the {this} this time.", "Look at the {this} first.",
    "Everything turns on the {this} today.", "Only the {this} matters in this case.",
)  # fmt: skip
_RATHER = (
    "Please decide it by the {this}, not by the {other}.",
    "It is not the {other} that counts but the {this}.",
    "It all hangs on the {this}, not on the {other}.",
    "Look at the {this} and not at the {other}.",
    "Not the {other} matters in this case but the {this}.",
)
_ASIDE = (
    "The {other} was cleaned in the morning.", "Nothing new about the {other}.",
    "Somebody asked for the {other} again.", "The {other} is as it was last week.",
    "We still wait for an answer about the {other}.", "The {other} had been seen to before.",
    "As for the {other}, there is no need to worry.", "A visitor took an interest in the {other}.",
)  # fmt: skip
_CHAT = (
    "All quiet around the {other}.", "We ran short of time because of the {other}.",
    "The {other} was late again.", "Thanks for sending the {other}.",
    "They moved the {other} yesterday.", "The {other} makes a strange noise.",
    "There was some trouble with the {other}.", "I could not find the {other}.",
)  # fmt: skip


class NoteAndPictureConfig(Record):
    """The drawn parameters.

    `quarters[i]` is the number of the quarter that noun i means. Class 1 has streaks that fall
    (`tilt`) or are fine (`pace`) if `sign` is 1, otherwise the opposite.
    """

    quarters: tuple[int, ...]
    quality: Literal["tilt", "pace"]
    sign: int
    contrast: float
    grain: float
    wrong: float
    rather: float
    asides: int


@FAMILIES.register("note_and_picture")
class NoteAndPicture(FamilyOf[NoteAndPictureConfig]):
    """See the module's text."""

    name: ClassVar[str] = "note_and_picture"
    modality: ClassVar[str] = "multimodal"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "turned_camera", "mirrored", "split_fields", "skewed_rows", "salt_and_pepper",
        "part_codes", "misread_letters", "broken_words", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = NoteAndPictureConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which noun means which quarter, and what is looked for there."""
        contrast, grain, wrong, rather, asides = _LEVELS[level - 1]
        quality: Literal["tilt", "pace"] = "tilt" if rng.random() < 0.5 else "pace"
        contrast *= float(rng.uniform(0.95, 1.05)) * (_FAINT if quality == "tilt" else 1)
        return cls(
            NoteAndPictureConfig(
                quarters=tuple(int(q) for q in rng.permutation(4)),
                quality=quality,
                sign=int(rng.choice((-1, 1))),
                contrast=round(contrast, 1),
                grain=grain,
                wrong=wrong,
                rather=rather,
                asides=asides,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture and the note."""
        return (
            Variable(name="feat_0", kind="image", abstract="grey picture of four patches"),
            Variable(name="feat_1", kind="note", abstract="note of some sentences", size=_NOUNS),
        )

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw four patches and a note for each row; some observed classes are wrong."""
        config = self.config
        facts = rng.choice((-1, 1), (n, 4))
        nouns = rng.integers(0, 4, n)
        pictures, notes = np.empty(n, dtype=object), np.empty(n, dtype=object)
        for i in range(n):
            pictures[i] = self._picture(rng, facts[i])
            notes[i] = self._note(rng, int(nouns[i]))
        named = facts[np.arange(n), np.array(config.quarters)[nouns]]
        clean = (named * config.sign > 0).astype(np.int64)
        observed = np.where(rng.random(n) < config.wrong, 1 - clean, clean)
        return Sample({"feat_0": pictures, "feat_1": notes}, observed, clean)

    def _picture(self, rng: np.random.Generator, facts: NDArray[np.int64]) -> NDArray[np.uint8]:
        config = self.config
        patches = []
        for fact in facts:
            angle, period = rng.uniform(0, np.pi), rng.uniform(*_PERIODS)
            if config.quality == "tilt":
                angle = fact * np.pi / 4 + rng.uniform(-_TURN, _TURN)
            else:
                period = _PERIODS[int(fact < 0)] * rng.uniform(0.95, 1.05)
            streaks = config.contrast * fibres(rng, _HALF, angle, period, 0.2)
            patches.append(rng.normal() * 5 + streaks)
        first, second = np.hstack(patches[:2]), np.hstack(patches[2:])
        light = rng.uniform(100, 155) + 12 * swell(rng, 2 * _HALF, 40)
        grain = config.grain * rng.normal(size=light.shape)
        return to_bytes(light + np.vstack([first, second]) + grain)

    def _note(self, rng: np.random.Generator, noun: int) -> str:
        """Return a note by which the quarter called by a noun counts."""
        config = self.config
        others = [i for i in rng.permutation(4).tolist() if i != noun]
        rather = rng.random() < config.rather
        said = [_said(rng, _RATHER if rather else _JUDGED, this=noun, other=others[0])]
        for other in others[: rng.integers(1, config.asides + 1)]:
            said.append(_said(rng, _ASIDE, other=other))
        for other in rng.integers(4, _NOUNS, rng.integers(1, 3)):
            said.append(_said(rng, _CHAT, other=other))
        return " ".join(said[i] for i in rng.permutation(len(said)))

    def rule(self) -> str:
        """Return what each noun means, and what is looked for."""
        config = self.config
        means = ", ".join(f"noun {i}: {_QUARTERS[q]}" for i, q in enumerate(config.quarters))
        found = {
            ("tilt", 1): "fall to the right",
            ("tilt", -1): "rise to the right",
            ("pace", 1): f"are fine ({_PERIODS[0]:g} pixels apart, not {_PERIODS[1]:g})",
            ("pace", -1): f"are coarse ({_PERIODS[1]:g} pixels apart, not {_PERIODS[0]:g})",
        }[config.quality, config.sign]
        return (
            "feat_1 says by which noun a row is judged, and the noun means a quarter of feat_0 "
            f"({means}); class 1 iff the streaks in that quarter {found}; in train "
            f"{config.wrong:.0%} of the classes are wrong"
        )

    def solution(self, names: Names) -> Solution:
        """Return the streaks of each quarter crossed with the noun that a note judges by."""
        return Solution(_FEATURES.format(**names), "sparse")


def _said(rng: np.random.Generator, sentences: tuple[str, ...], **nouns: int) -> str:
    """Return one of some sentences with numbers of nouns, as a note has them."""
    sentence = sentences[int(rng.integers(len(sentences)))]
    return sentence.format(**{name: f"<{number}>" for name, number in nouns.items()})


_FEATURES = r'''
nouns = "{nouns}".split()


def judged_by(note):
    """The noun that a note judges by: in a sentence that says so, and not after a "not"."""
    for sentence in note.split("."):
        if re.search(r"\b(decide|counts|hangs|look|turns|matters)\b", sentence.lower()):
            wanted = re.sub(r"\bnot (by |on |at )?the \w+", "", sentence.lower())
            return next((noun for noun in nouns if re.search(rf"\b{{noun}}\b", wanted)), None)


def streaks(pictures):
    """Tilt and fineness of the streaks in each quarter, from its spectrum."""
    x = np.stack(pictures).astype(float)
    n, size = len(x), x.shape[1] // 2
    x = x.reshape(n, 2, size, 2, size).swapaxes(2, 3).reshape(n, 4, size, size)
    window = np.hanning(size)[:, None] * np.hanning(size)
    power = np.abs(np.fft.rfft2((x - x.mean(axis=(2, 3), keepdims=True)) * window)) ** 2
    down, right = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)
    radius, angle = np.hypot(down, right), np.arctan2(down, right)
    power *= (radius > 0.11) & (radius < 0.33)
    total = power.sum(axis=(2, 3))
    tilt = (power * np.sin(2 * angle)).sum(axis=(2, 3)) / total
    return np.hstack([tilt, 10 * (power * (radius - 0.2)).sum(axis=(2, 3)) / total])


def features(frame):
    """Tilt and fineness of every quarter, each noun with those of its own."""
    noun = np.array([judged_by(note) for note in frame["{feat_1}"]])
    found = streaks(frame["{feat_0}"])
    return np.hstack([found * (noun == one)[:, None] for one in nouns])
'''
