"""The programs that the benchmarks run: the agent scripts, and three small ones."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).parent / "scripts"

NOOP = "pass"
FOREST = """
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(150, 20)), columns=[f"x{i}" for i in range(20)])
target = (frame["x0"] + frame["x1"] ** 2 > 0.8).astype(int)
model = RandomForestClassifier(n_estimators=100, random_state=0).fit(frame, target)
print(model.score(frame, target))
"""
NET = f"""
{FOREST}
import torch
from torch import nn

torch.manual_seed(0)
x = torch.tensor(frame.to_numpy(), dtype=torch.float32)
y = torch.tensor(target.to_numpy(), dtype=torch.float32)
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(50):
    optimiser.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
    loss.backward()
    optimiser.step()
print(round(loss.item(), 4))
"""


class Script(NamedTuple):
    """An agent script; `needs` are the packages it imports, by the names they are installed by."""

    name: str
    modality: str
    needs: tuple[str, ...]
    source: str


def agent_scripts() -> list[Script]:
    found = []
    for path in sorted(SCRIPTS.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        needs = source.partition("\n")[0].removeprefix("# needs:").split()
        found.append(Script(path.stem, path.stem.partition("_")[0], tuple(needs), source))
    return found


def missing(needs: tuple[str, ...]) -> list[str]:
    return [name for name in needs if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
