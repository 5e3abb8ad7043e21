"""Every attack against one mode of the sandbox: `SANDMLE_REDTEAM_MODE`, or the best one.

An attack must be held back where the guarantee that it needs is given, and must succeed where it is
not: a sandbox that is stronger or weaker than it says fails here.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from redteam import (
    abuse,
    field_reports,
    files_and_secrets,
    grader_input,
    lifetime,
    network_ipc,
    output,
    poisoning,
    privilege,
)
from redteam.arena import Arena, Host, refusal
from redteam.attack import Attack

MODE = os.environ.get("SANDMLE_REDTEAM_MODE", "")
REPORT = os.environ.get("SANDMLE_REDTEAM_REPORT", "")

CATEGORIES = (
    files_and_secrets,
    grader_input,
    poisoning,
    network_ipc,
    privilege,
    lifetime,
    abuse,
    output,
    field_reports,
)
ATTACKS: list[Attack] = [attack for category in CATEGORIES for attack in category.ATTACKS]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the confined modes need Linux")


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """The machine with its secrets, and the sandbox to attack."""
    with pytest.MonkeyPatch.context() as patch:
        host = Host()
        patch.setattr(tempfile, "tempdir", str(host.boxes))
        patch.setenv("TMPDIR", str(host.boxes))
        for name in host.facts()["keys"]:
            patch.setenv(name, host.secret)
        try:
            if not MODE and (why := refusal("ns")):
                pytest.skip(why)
            _use_threads()
            made = Arena(MODE or "ns", host)
            _report({"isolation": made.isolation.model_dump()})
            yield made
            made.close()
        finally:
            host.close()


def _use_threads() -> None:
    """Do what a harness does before it runs agents: fit something with OpenMP and BLAS."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.mixture import GaussianMixture

    rows = np.random.default_rng(0).random((300, 4))
    GaussianMixture(2, random_state=0).fit(rows)
    HistGradientBoostingClassifier(max_iter=5).fit(rows, rows[:, 0] > 0.5)


def test_the_suite_is_whole() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(names) >= 100
    assert len(set(names)) == len(names)
    for attack in ATTACKS:
        for sentence in (attack.tries, attack.must):
            assert sentence.endswith("."), attack.name
            assert len(sentence) > 20, attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(attack: Attack, arena: Arena) -> None:
    promised = attack.needs is None or getattr(arena.isolation, attack.needs)
    if why := attack.skip():
        pytest.skip(why)
    if not promised and attack.reckless:
        pytest.skip(f"would do harm without {attack.needs}")
    if attack.needs is None and arena.isolation.mode == "bare":
        pytest.skip("asks for a confined mode")
    started = time.monotonic()
    evidence = arena.play(attack)
    _report(
        {
            "name": attack.name,
            "needs": attack.needs,
            "promised": promised,
            "evidence": evidence,
            "seconds": round(time.monotonic() - started, 2),
        }
    )
    if promised:
        assert not evidence, f"{attack.tries}\n{attack.must}\n- " + "\n- ".join(evidence)
    else:
        assert evidence, f"{attack.tries}\nheld, though {attack.needs} is not promised"


def _report(line: dict[str, Any]) -> None:
    """Leave a line for `run_all.py`."""
    if REPORT:
        with Path(REPORT).open("a") as stream:
            stream.write(json.dumps(line) + "\n")
