from pathlib import Path

import pytest
from build import build_task
from hypothesis import given
from hypothesis import strategies as st

from sandmle.errors import TaskError, UsageError
from sandmle.tasks.corpus import Corpus, open_corpus, root_hash, split_ids

ANSWERS = "id,label\na,1\nb,0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    for i in range(12):
        metric = ("accuracy", "micro_f1", "roc_auc")[i % 3]
        build_task(root, ANSWERS, metric, ("0", "1"), task_id=f"t{i:02d}")
    return root


def test_open_list_filter(folder: Path) -> None:
    corpus = open_corpus(folder)
    assert len(corpus) == 12
    assert [task.id for task in corpus] == sorted(task.id for task in corpus)
    assert corpus.get("t03").id == corpus[3].id == "t03"
    accuracy = corpus.filter(lambda task: task.card.metric.name == "accuracy")
    assert [task.id for task in accuracy] == ["t00", "t03", "t06", "t09"]
    assert [task.id for task in corpus.head(2)] == ["t00", "t01"]
    with pytest.raises(UsageError, match="no task 'nope'"):
        corpus.get("nope")


def test_a_single_task_is_a_corpus_of_one(folder: Path) -> None:
    assert [task.id for task in open_corpus(folder / "t05")] == ["t05"]


def test_a_broken_task_does_not_stop_the_rest(tmp_path: Path) -> None:
    build_task(tmp_path, ANSWERS, classes=("0", "1"), task_id="good")
    bad = build_task(tmp_path, ANSWERS, classes=("0", "1"), task_id="bad")
    (bad.root / "task.json").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".draft").mkdir()
    corpus = open_corpus(tmp_path)
    assert [task.id for task in corpus] == ["good"]
    assert [fault.path.name for fault in corpus.broken] == ["bad"], "empty is no task at all"
    assert all(str(fault.path) in fault.reason for fault in corpus.broken)


def test_nothing_there_says_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UsageError, match="sandmle generate"):
            open_corpus(path)


def test_a_broken_index_is_told(tmp_path: Path) -> None:
    build_task(tmp_path, ANSWERS, classes=("0", "1"))
    (tmp_path / "corpus.json").write_text('{"name": 3}')
    with pytest.raises(TaskError, match=r"corpus\.json"):
        open_corpus(tmp_path)
    (tmp_path / "corpus.json").unlink()
    (tmp_path / "corpus.json").mkdir()
    with pytest.raises(TaskError, match=r"corpus\.json: cannot be read"):
        open_corpus(tmp_path)


def test_a_linked_copy_does_not_count_twice(tmp_path: Path) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    (tmp_path / "again").symlink_to(task.root)
    corpus = open_corpus(tmp_path)
    assert len(corpus) == 1
    assert "rename it to small-task" in corpus.broken[0].reason


def test_splits_are_those_of_the_index(corpus: Corpus) -> None:
    names = {task.id for task in corpus.split("train")} | {t.id for t in corpus.split("val")}
    assert names == {task.id for task in corpus}
    with pytest.raises(UsageError, match="no split 'test'; there are: train, val"):
        corpus.split("test")


def test_the_root_hash_does_not_depend_on_order(folder: Path) -> None:
    hashes = [(task.id, task.content_hash) for task in open_corpus(folder)]
    assert root_hash(hashes) == root_hash(hashes[::-1]) == open_corpus(folder).root_hash
    assert root_hash(hashes) != root_hash(hashes[1:])


STRATA = {f"t{i:02d}": ("accuracy", "micro_f1", "roc_auc")[i % 3] for i in range(12)}


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]))
def test_split_is_a_stratified_partition(seed: int, fraction: float) -> None:
    train, validation = split_ids(STRATA, fraction, seed)
    assert sorted([*train, *validation]) == sorted(STRATA)
    assert len(validation) == round(fraction * 12)
    for metric in ("accuracy", "micro_f1", "roc_auc"):
        share = sum(STRATA[name] == metric for name in validation)
        assert abs(share - fraction * 4) < 1
    assert split_ids(dict(reversed(STRATA.items())), fraction, seed) == (train, validation)


def test_strata_of_one_task_share_the_quota() -> None:
    _, validation = split_ids({f"t{i}": f"s{i}" for i in range(40)}, 0.1, 0)
    assert len(validation) == 4


def test_clusters_stay_on_one_side() -> None:
    clusters = {f"t{i:02d}": f"c{i // 6}" for i in range(12)}
    for seed in range(20):
        sides = split_ids(dict.fromkeys(STRATA, "all"), 0.5, seed, clusters)
        first, second = ({clusters[name] for name in side} for side in sides)
        assert not first & second
        assert len(sides[1]) == 6


def test_an_impossible_fraction_is_refused() -> None:
    with pytest.raises(UsageError, match="not within"):
        split_ids(STRATA, 1.0, 0)
