"""Make a task, play its own ladder on it, look at what that earned."""

from pathlib import Path

from sandmle import generate, load_config, run_rollout

corpus = generate(Path("tasks"), n=1, seed=0)
config = load_config(None, [f"corpus.path='{corpus.root}'", "group=8"])
summary = run_rollout(config, Path("run"))
print(corpus[0].description.splitlines()[0], summary["reward"])
