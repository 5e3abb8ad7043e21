"""The notebook runs from top to bottom, and shows what stands in the file."""

import shutil
from pathlib import Path

import notebook
import pytest

from sandmle.tasks.corpus import Corpus


def test_the_notebook(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(package, reason="pip install nbclient ipykernel")
    import nbformat

    # the same tasks that its first cell asks for, so it finds them made
    shutil.copytree(corpus.root, tmp_path / "tasks")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    found = notebook.shown(notebook.executed(tmp_path))
    assert found == notebook.shown(nbformat.read(notebook.PAGE, as_version=4))
    for title in ("Corpus tasks", f"Task {corpus[0].id}", "Trajectory "):
        assert any(f"<caption>{title}" in one for one in found), title
    assert "reference" in "".join(found)
