"""The first tasks of the corpus that the docs name come out the same, to the byte.

A third of them is made in every run of the suite; CI makes one of the others beside, in turn.
"""

import json

import pytest
from build import PUBLISHED, check_rungs, published_job

from sandmle.factory.slot import fill
from sandmle.tasks.folder import open_task

RECORD = json.loads(PUBLISHED.read_text())
EVERY = len(RECORD["first"]) // 3
SLOTS = [
    pytest.param(slot, marks=[] if slot < EVERY else [pytest.mark.slow])
    for slot in range(len(RECORD["first"]))
]


@pytest.mark.parametrize("slot", SLOTS)
def test_a_task_is_made_again(slot: int, sandbox, tmp_path) -> None:
    filled = fill(tmp_path, published_job(), slot, sandbox)
    assert [filled.task_id, filled.content_hash] == RECORD["first"][slot]
    if slot % 4 == 0:
        check_rungs(open_task(tmp_path / filled.task_id), sandbox)
