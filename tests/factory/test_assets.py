"""Files of rows: what libraries read from them is what was drawn, and nothing else differs."""

import io
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sandmle.factory.assets import png, wav, write_assets
from sandmle.factory.family import Sound


@given(st.integers(1, 200), st.integers(1, 200), st.booleans(), st.integers(0, 9))
def test_a_picture_is_read_as_it_was_drawn(h: int, w: int, colour: bool, seed: int) -> None:
    shape = (h, w, 3) if colour else (h, w)
    pixels = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    image = Image.open(io.BytesIO(png(pixels)))
    assert image.info == {}
    np.testing.assert_array_equal(np.asarray(image), pixels)


def test_every_picture_of_a_shape_has_the_same_size() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (96, 96, 3)).astype(np.uint8)
    assert len(png(noise)) == len(png(np.zeros_like(noise))) < 28_000


@pytest.mark.parametrize("rate", [8000, 11025])
def test_a_sound_is_read_as_it_was_drawn(rate: int) -> None:
    samples = np.random.default_rng(0).normal(size=4800) * 0.3
    samples[:2] = (-3, 3)
    with wave.open(io.BytesIO(wav(Sound(rate, samples)))) as file:
        facts = (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes())
        assert facts == (rate, 1, 2, 4800)
        read = np.frombuffer(file.readframes(4800), "<i2") / 32767
    np.testing.assert_allclose(read, samples.clip(-1, 1), atol=1 / 32767)


def test_paths_follow_the_rows() -> None:
    grey = np.zeros((8, 8), np.uint8)
    assert list(write_assets("image", "A1", grey)) == ["images/A1.png"]
    assert list(write_assets("frames", "A1", [grey, grey])) == [
        "images/A1_1.png",
        "images/A1_2.png",
    ]
    assert write_assets("document", "A1", "caf\u00e9") == {"docs/A1.txt": b"caf\xc3\xa9"}
