"""Words that give away what a seed is about, and where they come back."""

import re
from collections.abc import Iterable

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_LEAST = 4  # letters; shorter words are those of grammar, mostly

# words that say of what form data, targets and tasks are, not what they are about; in singular
_FORM = """
about access accurate after agency also analysis array artifact attribute audio automated
automatic based before between bias binary block box breakthrough categorization category
challenge change clarify class classification classifier clip cloud column competition confidence
constant continuous dataset deep denoising detection dimension distribution document edition
encoded evaluation event extraction feature field file from global group harmful hidden
identification identify identity image imputation index integer interesting into item kaggle
kernel label learning level line mask matching mean measure method missing modal model month multi
multimodal name noise number object only order part phrase picture pixel place playground position
predict predicted predicting prediction probability property public quest question reaction
reading real recognition recommendation record recording redux region regression relative score
scoring section segment segmentation select selected sentence sequence series session signal size
sound source step string subject table tabular tag tagging target task tensor test text that their
this time token tool train translation type understand understanding unit usage using value
version view vote week with word your
"""
STRUCTURAL = frozenset(_FORM.split())


def content_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of titles, columns and the like that are about something, in singular.

    >>> sorted(content_words(["Predict Volcanic Eruptions", "time_to_eruption"]))
    ['eruption', 'volcanic']
    """
    return frozenset(w for text in texts for w in words(text) if len(w) >= _LEAST) - STRUCTURAL


def surviving(known: Iterable[str], text: str) -> list[str]:
    """Return which of these words stand in a text, sorted; parts of names in it are words too."""
    return sorted(frozenset(known) & frozenset(words(text)))


def words(text: str) -> list[str]:
    """Return the words of a text or name, in small letters and singular."""
    return [_singular(piece.lower()) for piece in _PIECE.findall(text)]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
