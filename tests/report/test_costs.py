"""What runs cost, worked by hand."""

import json
from pathlib import Path

import pytest
from small import write_run

from sandmle.report.costs import Prices, cost_table, run_costs
from sandmle.report.runs import read_run

STEP = {
    "reward": 0.5, "tokens": 100, "gpus": 2,
    "seconds_generate": 18.0, "seconds_execute": 9.0, "seconds_update": 36.0, "seconds_other": 3.6,
    "cpu_generate": 36.0, "cpu_update": 72.0, "cpu_other": 3.6,
}  # fmt: skip


def trained(folder: Path, *steps: dict) -> Path:
    run = write_run(folder, {"t": [0.5, 0.9]}, {"t": [0.1, 0.5]})
    lines = [json.dumps({"step": n + 1, **step}) for n, step in enumerate(steps)]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    looks = [json.dumps({"step": n, "reward": 0.1, "splits": {}, "seconds": 5.0}) for n in (0, 2)]
    (run / "validation.jsonl").write_text("\n".join(looks) + "\n")
    return run


def test_the_phases_of_a_training_run(tmp_path: Path) -> None:
    run = read_run(trained(tmp_path / "r", STEP, STEP))
    cpu_s = {"cpu_s": 1.8}
    turns = [
        t.model_copy(
            update={
                "turns": tuple(
                    u.model_copy(update={"result": u.result.model_copy(update=cpu_s)})
                    for u in t.turns
                )
            }
        )
        for t in run.trajectories
    ]
    run = run._replace(trajectories=turns)
    costs = {cost.phase: cost for cost in run_costs(run, Prices(cpu=1.0, gpu=10.0))}
    assert list(costs) == ["sampling", "programs", "updates", "the rest", "validation"]
    sampling = costs["sampling"]
    assert (sampling.seconds, sampling.tokens) == (36.0, 200)
    assert sampling.cpu_h == pytest.approx(0.02)
    assert sampling.gpu_h == pytest.approx(0.02), "two of them for 36 s"
    assert sampling.usd == pytest.approx(0.02 + 0.2)
    ran = sum(u.result is not None for t in turns for u in t.turns)
    assert ran >= 2
    assert costs["programs"].cpu_h == pytest.approx(ran * 1.8 / 3600)
    assert costs["updates"].usd == pytest.approx(0.04 + 0.4)
    assert (costs["validation"].seconds, costs["validation"].usd) == (10.0, None)


def test_what_is_not_known_is_never_zero(tmp_path: Path) -> None:
    lacking = {name: value for name, value in STEP.items() if name not in ("cpu_update", "gpus")}
    run = read_run(trained(tmp_path / "r", STEP, lacking))
    costs = {cost.phase: cost for cost in run_costs(run, Prices(cpu=1.0, gpu=10.0))}
    assert costs["updates"].cpu_h is None
    assert costs["sampling"].gpu_h is None
    assert costs["sampling"].cpu_h == pytest.approx(0.02)
    assert {cost.usd for cost in costs.values()} == {None}
    whole = read_run(trained(tmp_path / "w", STEP))
    costs = {cost.phase: cost for cost in run_costs(whole, Prices(cpu=1.0))}
    assert costs["sampling"].usd is None, "two accelerators whose price nobody said"
    no_gpu = read_run(trained(tmp_path / "s", {**STEP, "gpus": 0}))
    costs = {cost.phase: cost for cost in run_costs(no_gpu, Prices(cpu=1.0))}
    assert costs["sampling"].usd == pytest.approx(0.01), "no price is needed for what was not there"


def test_the_table_of_a_rollout(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "r", {"t": [0.5, 0.9]}))
    grid = cost_table([run])
    assert [row[1] for row in grid.rows] == ["model", "programs"]
    model = dict(zip(grid.header, grid.rows[0], strict=True))
    assert (model["CPU-h"], model["GPU-h"], model["USD"]) == ("–", "–", "–")
