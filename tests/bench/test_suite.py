"""The suite of real tables: what it is made of, and one of them built."""

from importlib.util import find_spec

import pytest

from sandmle.bench.real import SUITE, build_suite
from sandmle.errors import MissingExtraError
from sandmle.grading.grader import Grader
from sandmle.tasks.corpus import open_corpus


def test_there_are_at_least_twelve_of_two_packages() -> None:
    assert len({source.name for source in SUITE}) == len(SUITE) >= 12
    assert {source.package for source in SUITE} == {"sklearn", "statsmodels"}
    forms = {next((n for n in ("group", "time") if n in s.options), "hash") for s in SUITE}
    assert forms == {"hash", "group", "time"}


def test_one_is_built_and_kept(tmp_path) -> None:
    (built,) = build_suite(tmp_path / "real", ["wine-proline"])
    corpus = open_corpus(tmp_path / "real")
    assert corpus.index.splits == {"test": (built.task.id,)}
    assert Grader(corpus[0]).grade(corpus[0].read("private/answer.csv")).reached["gold"]
    assert "target" not in corpus[0].text("public/train.csv").splitlines()[0], "it was left out"
    assert build_suite(tmp_path / "real", ["wine-proline"]) == []


@pytest.mark.skipif(find_spec("statsmodels") is not None, reason="it is installed")
def test_a_package_that_is_missing_is_named(tmp_path) -> None:
    with pytest.raises(MissingExtraError, match="statsmodels not installed: pip install"):
        build_suite(tmp_path / "real")
    assert not (tmp_path / "real").exists()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("statsmodels") is None, reason="needs pip install 'sandmle[bench]'")
def test_all_of_them_pass_the_checks_that_bind(tmp_path) -> None:
    assert len(build_suite(tmp_path / "real")) == len(SUITE)
