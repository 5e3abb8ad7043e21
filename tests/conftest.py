"""Fixtures that several files share. Generated tasks are made once."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from build import FAMILY, SEED
from hypothesis import Phase, settings

from sandmle.factory.pipeline import generate
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task

# a busy machine is no failure, and a red test must be red again when it is looked at
settings.register_profile("here", deadline=None, derandomize=True)
# for seeded faults, where it matters that a test fails and not how simply
settings.register_profile(
    "unshrunk", settings.get_profile("here"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("here")


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what killed processes and hostile programs leave behind out of the machine's /tmp."""
    folder = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("TMPDIR", folder)
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two generated tasks that have passed the gate; one wants labels, one scores.

    Test processes that run side by side share them: the first makes them, to the others
    `generate` is a command that has nothing left to do.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "corpus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return generate(shared / "shared" / "two", 2, SEED, FAMILY)


@pytest.fixture(scope="session")
def task(corpus: Corpus) -> Task:
    """One generated task."""
    return corpus[0]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The default sandbox, closed at the end; each test opens its own workspaces."""
    made = open_sandbox()
    yield made
    made.close()


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder of public files."""
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "train.csv").write_text("id,x,y\na,1,2\n")
    return folder
