"""A run with everything hostile that an agent can say, and a corpus to look at."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import FOUND, Browser, open_browser
from build import build_task

from sandmle.config import load_config
from sandmle.rollout.runner import run_rollout

ANSWERS = "id,label\na,1\nb,0\n"
HOSTILE = (
    "<script>window.hacked = 1</script></script><!--<script>"
    '"><img src=x onerror="window.hacked = 1"> \u202e\x1b[31m {{ 7 * 7 }} &amp; ]]> \u2028 \x00'
)


def whole(page: Path) -> str:
    """Return a page of tasks with their details unpacked."""
    return re.sub(
        r'(?<=<script type="text/plain" )(id="[\w-]+">)([\w+/=]+)',
        lambda found: found[1] + zlib.decompress(base64.b64decode(found[2])).decode(),
        page.read_text(),
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of one episode whose program prints what no page must believe."""
    folder = tmp_path_factory.mktemp("made")
    code = (
        f"import sys\nprint({HOSTILE!r})\nsys.stdout.flush()\n"
        "sys.stdout.buffer.write(b'invalid: \\xff\\xfe\\n')\n"
        f"open('submission.csv', 'w').write({ANSWERS!r})\n"
    )
    build_task(folder / "c", ANSWERS, classes=("0", "1"), solutions={"90-reference": code})
    settings = load_config(None, [f"corpus.path='{folder / 'c'}'", "group=1"])
    run_rollout(settings, folder / "run", f"sandmle {HOSTILE}")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """Return a copy of that run, to be changed."""
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def line(run: Path) -> dict:
    """Return the trajectory of that run as it stands in the file."""
    return json.loads((run / "trajectories.jsonl").read_text())


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a real browser; without one its tests are skipped and say so."""
    if FOUND is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    with open_browser() as opened:
        yield opened
