"""Fixtures that several files share. Generated tasks are made once a test process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.factory.pipeline import generate
from sandmle.sandbox.base import SANDBOXES, Sandbox
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two generated tasks that have passed the gate."""
    return generate(tmp_path_factory.mktemp("corpus") / "two", n=2, seed=0)


@pytest.fixture(scope="session")
def task(corpus: Corpus) -> Task:
    """One generated task."""
    return corpus[0]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A cold sandbox, closed at the end."""
    made = SANDBOXES.get("cold")()
    yield made
    made.close()


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder of public files."""
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "train.csv").write_text("id,x,y\na,1,2\n")
    return folder
