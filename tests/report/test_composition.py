"""What a corpus is made of, counted and drawn; the gallery shows each family and runs nothing."""

import json
from pathlib import Path

import pytest
from build import build_task
from PIL import Image

from sandmle.errors import UsageError
from sandmle.factory.mix import Mix
from sandmle.factory.slot import Job, fill
from sandmle.report.corpus import GROUPS, corpus_facts, draw_figures, write_card
from sandmle.report.gallery import write_gallery
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.corpus import Corpus, open_corpus


def test_every_task_is_counted_once_in_each_table(corpus: Corpus, tmp_path: Path) -> None:
    facts = corpus_facts(corpus)
    assert facts.tasks == len(corpus) == facts.sound == facts.rungs.tasks
    for group in GROUPS:
        assert sum(facts.counts[group].values()) == len(corpus)
    assert facts.counts["modality"] == {"tabular": len(corpus)}
    assert facts.funnel["accepted"] == len(corpus)
    records = [json.loads(task.read("private/verification.json")) for task in corpus]
    assert facts.checks == sum(len(record["checks"]) for record in records)
    assert facts.rungs.reference_above_generic == facts.rungs.reference_above_dummy == len(corpus)
    assert facts.root_hash == corpus.root_hash
    write_card(facts, tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text()
    assert facts.root_hash in text
    assert f"| tabular | {len(corpus)} | 100.0 % |" in text
    paths = draw_figures(facts, tmp_path / "figures")
    assert [path.name for path in paths] == ["composition.png", "sizes.png"]
    for path in paths:
        with Image.open(path) as figure:
            assert figure.width > 500


def test_a_gallery_shows_pictures_rows_and_the_ladder(sandbox: Sandbox, tmp_path: Path) -> None:
    job = Job(seed=1, mix=Mix(families={"image_shapes": 1}).resolve())
    root = tmp_path / "tasks"
    root.mkdir()
    filled = fill(root, job, 0, sandbox)
    corpus = open_corpus(root)
    page, markdown = tmp_path / "gallery.html", tmp_path / "GALLERY.md"
    about = {"image_shapes": "<b>About</b> shapes."}
    assert write_gallery(corpus, about, page, markdown) == 1
    text = markdown.read_text()
    assert filled.task_id in text
    assert "![some training pictures](docs/gallery/image_shapes.png)" in text
    with Image.open(tmp_path / "docs" / "gallery" / "image_shapes.png") as sheet:
        assert sheet.height == 96
    html = page.read_text()
    assert "&lt;b&gt;About&lt;/b&gt;" in html
    assert "data:image/png;base64," in html
    assert all(f"<td>{rung.name}</td>" in html for rung in corpus[0].card.ladder)


def test_there_is_nothing_to_show_of_nothing(tmp_path: Path) -> None:
    build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    facts = corpus_facts(open_corpus(tmp_path))
    assert facts.counts["domain"] == {"(unknown)": 1}
    assert facts.rungs.tasks == facts.checks == facts.sound == 0
    with pytest.raises(UsageError, match="no task of a procedural family"):
        write_gallery(open_corpus(tmp_path), {}, tmp_path / "x.html", None)
