"""A small task for searches."""

from pathlib import Path

import pytest
from build import build_task
from scaffolds.played import ANSWERS

from sandmle.tasks.folder import Task


@pytest.fixture
def small(tmp_path: Path) -> Task:
    """Four rows, accuracy: higher is better."""
    return build_task(tmp_path, ANSWERS, classes=("0", "1"))


@pytest.fixture
def error(tmp_path: Path) -> Task:
    """The same with an error as its metric: lower is better."""
    return build_task(tmp_path, ANSWERS.replace("label", "label"), metric="rmse")
