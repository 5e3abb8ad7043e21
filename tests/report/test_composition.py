"""What a corpus is made of, counted and drawn; the gallery shows each family and runs nothing."""

import json
from pathlib import Path

import pytest
from build import build_task
from conftest import whole
from PIL import Image

from sandmle.errors import TaskError, UsageError
from sandmle.factory.mix import Mix
from sandmle.factory.slot import Job, fill
from sandmle.report.corpus import GROUPS, corpus_facts, draw_figures, write_card
from sandmle.report.corpus_page import write_corpus_page
from sandmle.report.gallery import write_gallery
from sandmle.report.view import write_view
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.corpus import Corpus, open_corpus

EVIL = "<script>alert(1)</script>"


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
    assert write_gallery(corpus, about, markdown) == 1
    write_corpus_page(corpus, page, about, one_of_each=True)
    text = markdown.read_text()
    assert filled.task_id in text
    assert "![some training pictures](docs/gallery/image_shapes.png)" in text
    with Image.open(tmp_path / "docs" / "gallery" / "image_shapes.png") as sheet:
        assert sheet.height == 96
    html = whole(page)
    assert "&lt;b&gt;About&lt;/b&gt;" in html
    assert "data:image/png;base64," in html
    assert all(f">{rung.name}</text>" in html for rung in corpus[0].card.ladder)
    assert "<code>public/images/…</code>" in html, "many files of one folder are one line"
    checks = json.loads(corpus[0].read("private/verification.json"))["checks"]
    assert f"The gate: {sum(check['passed'] is True for check in checks)} hold" in html
    assert f"root hash {corpus.root_hash[:16]}" in html


def test_there_is_nothing_to_show_of_nothing(tmp_path: Path) -> None:
    build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    facts = corpus_facts(open_corpus(tmp_path))
    assert facts.counts["domain"] == {"(unknown)": 1}
    assert facts.rungs.tasks == facts.checks == facts.sound == 0
    with pytest.raises(UsageError, match="no task of a procedural family"):
        write_gallery(open_corpus(tmp_path), {}, tmp_path / "x.md")


def test_a_task_from_anywhere_is_shown_and_is_only_text(tmp_path: Path) -> None:
    task = build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    (task.public / "description.md").write_text(f"# {EVIL}\n\n- {EVIL}\n\n| a | {EVIL} |\n")
    (task.public / "train.csv").write_text(f'id,{EVIL}\n1,"\x1b[31m\u202e"\n')
    path = write_view([task.root])
    assert path == task.root.with_suffix(".html"), "a task's folder holds what its card lists"
    page = whole(path)
    assert EVIL not in page
    assert page.count("&lt;script&gt;") >= 4
    assert "␛[31m⟨U+202E⟩" in page
    assert "What is hidden" not in page, "it came without a specification"
    (task.private / "verification.json").write_text("[]")
    with pytest.raises(TaskError, match="holds no checks"):
        write_view([task.root])


def test_a_broken_task_and_a_broken_picture_are_told(tmp_path: Path) -> None:
    task = build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "task.json").write_text("{")
    assert "1 folders are no tasks" in write_view([tmp_path]).read_text()
    (task.public / "images").mkdir()
    (task.public / "images" / "a.png").write_text("no picture")
    (task.public / "train.csv").write_text("id,picture\n1,images/a.png\n")
    with pytest.raises(TaskError, match=r"train\.csv: names a picture that cannot be read"):
        write_view([tmp_path])
