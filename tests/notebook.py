"""Runs the notebook of the documents and compares what it shows, or writes it anew.

python tests/notebook.py --write
"""

import os
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "tour.ipynb"


def executed(folder: Path):
    """Return the notebook as it is after it was run in a folder; raises what a cell raises."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(PAGE, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(
        book, timeout=None, startup_timeout=600, kernel_name="python3", resources=place
    ).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # when it was run
    return book


def shown(book) -> list[str]:
    """Return what each cell with code shows, as HTML where there is any."""
    return [
        "".join(
            out.get("text", "") or out["data"].get("text/html", out["data"].get("text/plain", ""))
            for out in cell.outputs
        )
        for cell in book.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    import nbformat

    os.environ.setdefault("PYTHONPATH", os.pathsep.join(sys.path[1:]))
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(Path(folder)), PAGE)
