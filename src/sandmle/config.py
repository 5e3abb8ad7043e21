"""Run configuration: TOML files, `--set a.b=c` on top, checked whole before any work starts.

One file describes a run. Unknown keys, wrong types and keys given twice are refused with a line
that names the nearest valid key; the effective configuration is saved in the run folder and can
be fed back as it is.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from sandmle.errors import UsageError
from sandmle.registry import nearest
from sandmle.types import JsonDict, Limits, Record, RewardMode, RewardRule

DEFAULT_SANDBOX = "ns"


class CorpusSection(Record):
    """Which tasks: a corpus or one task folder, and optionally one of its splits."""

    path: str | None = None
    split: str | None = None
    limit: int | None = Field(default=None, ge=1)


class EnvSection(Record):
    """How an episode is played; the defaults are the paper's (section 5.1).

    After `wall_s` seconds nothing is begun; a program that runs then may take `grace_s` more.
    When the conversation is longer than `context_tokens`, `context` says what is left out
    (`sandmle.env.context`). The `compact` prompt fits in 256 tokens, for very small models.
    `dialect` is how actions are written (`sandmle.env.dialects`). `search` are constants of the
    scaffold, in place of its own (`docs/scaffolds.md`).
    """

    scaffold: str = "react"
    max_turns: int = Field(default=20, ge=1)
    feedback: Literal["none", "validity"] = "validity"
    finalize: Literal["last", "last_valid"] = "last"
    observation_chars: int = Field(default=4000, ge=200)
    wall_s: float | None = Field(default=None, gt=0)
    grace_s: float = Field(default=0.0, ge=0)
    context: str = "evict_failed"
    context_tokens: int = Field(default=32768, ge=256)
    prompt: Literal["full", "compact"] = "full"
    dialect: str = "sandmle"
    search: JsonDict = {}

    @model_validator(mode="after")
    def _compact_is_ours(self) -> Self:
        if self.prompt == "compact" and self.dialect != "sandmle":
            raise ValueError("the compact prompt tells of the dialect sandmle only")
        return self


class RewardSection(Record):
    """A preset by name, or a mode with weights of one's own."""

    preset: str = "paper"
    mode: RewardMode | None = None
    weights: dict[str, float] | None = None

    @model_validator(mode="after")
    def _custom_is_whole(self) -> Self:
        if (self.mode is None) != (self.weights is None):
            raise ValueError("a reward of your own needs both mode and weights")
        if self.mode is not None and self.weights is not None:
            RewardRule(mode=self.mode, weights=self.weights)
        return self


class PolicySection(Record):
    """Who plays, as SORT:NAME, and how it samples.

    `turn_tokens` is the limit of one reply. `requests` is how many an endpoint is asked at once,
    `timeout_s` how long a reply may take, `retries` how often a failed request is sent again.
    `usd_per_million` is the price of prompt and completion tokens; unknown if it is not given.
    `max_usd` and `max_tokens` end a run of its model: every later request fails.
    """

    name: str = "scripted:ladder"
    temperature: float = Field(default=1.0, ge=0)
    turn_tokens: int = Field(default=512, ge=1)
    requests: int = Field(default=8, ge=1)
    timeout_s: float = Field(default=300, gt=0)
    retries: int = Field(default=4, ge=0)
    usd_per_million: tuple[float, float] | None = None
    max_usd: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)


class SandboxSection(Record):
    """Where agent code runs, how many programs at once, and what one execution may use.

    `preload` names what a warm sandbox imports beforehand (`docs/sandbox.md`); `require` names
    guarantees without which nothing starts. Without `workers` there are as many as `concurrency`.
    """

    backend: str = DEFAULT_SANDBOX
    workers: int | None = Field(default=None, ge=1)
    preload: str = "full"
    require: tuple[str, ...] = ()
    limits: Limits = Limits()


class LoraSection(Record):
    """Train low-rank adapters (peft) in place of all weights; rank 0: all weights."""

    rank: int = Field(default=0, ge=0)
    alpha: float = Field(default=32, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[str, ...] = ("all-linear",)


class VLLMSection(Record):
    """Who samples: `off` the trained model itself, `colocate` or `server` vLLM, through TRL.

    `correction` is how TRL weighs the difference between the two (its
    `vllm_importance_sampling_mode`); `sequence_*` modes drop most long trajectories.
    """

    mode: Literal["off", "colocate", "server"] = "off"
    memory: float = Field(default=0.3, gt=0, lt=1)
    model_length: int | None = Field(default=None, ge=1)
    server: str | None = None
    correction: Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = (
        "token_truncate"
    )


class GRPOSection(Record):
    """Trajectory-level GRPO; the defaults are the paper's (appendix A.2).

    `tasks_per_step` tasks are played `group` times for each step, and `passes` updates are made
    from what was played. `completion_tokens` bounds a trajectory behind its prompt, observations
    included. `timeout_rule` says when a trajectory is masked: `any` of its executions timed out
    (paper), `fraction>X` of them did, or `never`. `resample_flat` is how many times groups without
    spread are replaced by groups of other tasks. With `aim`, tasks are drawn of kinds that this
    share of the last episodes brought to `aim_at` (`sandmle.train.aim`); without it, each in turn.

    `loss`, `scale_rewards` and `beta` are TRL's. `micro_batch` is how many trajectories go through
    the model at once (default: a group). `precision` of the computation, not of the weights, which
    are float32: `auto` is bfloat16 where the hardware has it (`sandmle.train.precision`). `threads`
    is torch's number on a CPU.
    `warmup_steps`, `save_every` and the schedule count steps, not passes. `keep` checkpoints stay,
    and the best one beside them.
    """

    steps: int = Field(default=100, ge=1)
    tasks_per_step: int = Field(default=16, ge=1)
    passes: int = Field(default=1, ge=1)
    completion_tokens: int = Field(default=4096, ge=1)
    timeout_rule: str = "any"
    resample_flat: int = Field(default=0, ge=0)
    aim: float | None = Field(default=None, gt=0, lt=1)
    aim_at: Literal["valid", "median", "bronze", "silver", "gold", "any_medal"] = "median"

    loss: Literal["grpo", "dapo", "dr_grpo", "bnpo"] = "grpo"
    scale_rewards: Literal["group", "batch", "none"] = "group"
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.28, gt=0)
    beta: float = Field(default=0.0, ge=0)

    learning_rate: float = Field(default=1e-6, gt=0)
    schedule: Literal["constant", "linear"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    adam_betas: tuple[float, float] = (0.9, 0.999)
    adam_epsilon: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)

    micro_batch: int | None = Field(default=None, ge=1)
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    gradient_checkpointing: bool = False
    threads: int | None = Field(default=None, ge=1)
    save_every: int = Field(default=10, ge=1)
    keep: int = Field(default=1, ge=1)
    report_to: Literal["none", "tensorboard", "trackio", "wandb"] = "none"
    lora: LoraSection = LoraSection()
    vllm: VLLMSection = VLLMSection()

    @field_validator("timeout_rule")
    @classmethod
    def _rule_is_known(cls, rule: str) -> str:
        timeout_limit(rule)
        return rule


def timeout_limit(rule: str) -> float | None:
    """Return the share of timed-out executions above which a trajectory is masked; None: never.

    >>> timeout_limit("any"), timeout_limit("fraction>0.2"), timeout_limit("never")
    (0.0, 0.2, None)
    """
    if rule in ("any", "never"):
        return 0.0 if rule == "any" else None
    found = re.fullmatch(r"fraction>(0?\.\d+|0)", rule)
    if found is None:
        raise ValueError("write any, never or fraction>X with X from 0 to below 1")
    return float(found[1])


class SFTSection(Record):
    """Supervised fine-tuning on the replies of recorded episodes.

    `batch` conversations make an update, `micro_batch` of them go through the model at once.
    Conversations longer than `max_tokens` are left out. `only_valid` keeps episodes that ended with
    a valid submission, `min_reward` those that earned at least that, `best_of_group` only the best
    one of each group. The schedule is a cosine to zero after `warmup_steps`; `threads` and
    `precision` are as in `[grpo]`.
    """

    epochs: int = Field(default=3, ge=1)
    batch: int = Field(default=16, ge=1)
    micro_batch: int | None = Field(default=None, ge=1)
    max_tokens: int = Field(default=32768, ge=1)
    only_valid: bool = False
    min_reward: float | None = None
    best_of_group: bool = False

    learning_rate: float = Field(default=1e-5, gt=0)
    warmup_steps: int = Field(default=10, ge=0)
    adam_betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    gradient_checkpointing: bool = False
    threads: int | None = Field(default=None, ge=1)
    save_every: int = Field(default=100, ge=1)
    report_to: Literal["none", "tensorboard", "trackio", "wandb"] = "none"


class EvalSection(Record):
    """Validation while training, on tasks that are not trained on.

    Before the first step, after every `every` steps and after the last one, each task of each of
    `splits` that the corpus has (at most `limit` of each) is played `episodes` times. The best
    checkpoint is the one with the highest mean reward on the first of them. `every = 0`: none.
    """

    every: int = Field(default=0, ge=0)
    splits: tuple[str, ...] = Field(default=("val", "ood"), min_length=1)
    episodes: int = Field(default=1, ge=1)
    limit: int | None = Field(default=None, ge=1)


class Config(Record):
    """The whole configuration of a rollout or a training run."""

    seed: int = Field(default=0, ge=0, lt=2**32)
    group: int = Field(default=4, ge=1)
    concurrency: int = Field(default=2, ge=1)
    corpus: CorpusSection = CorpusSection()
    env: EnvSection = EnvSection()
    reward: RewardSection = RewardSection()
    policy: PolicySection = PolicySection()
    sandbox: SandboxSection = SandboxSection()
    grpo: GRPOSection = GRPOSection()
    sft: SFTSection = SFTSection()
    eval: EvalSection = EvalSection()


def load_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file, lay `a.b=c` overrides on top and check the result.

    Raises `UsageError` with every fault, one a line.
    """
    data = _read(Path(path)) if path is not None else {}
    seen: set[str] = set()
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator or not all(part.strip() for part in key.split(".")):
            raise UsageError(f"--set {override}: write it as section.key=value")
        key = key.strip()
        clash = next((k for k in seen if f"{k}.".startswith(f"{key}.")), None)
        if clash is not None:
            raise UsageError(f"--set {key}: {clash} was given before; keep one of them")
        seen.add(key)
        _place(data, key.split("."), _value(value))
    try:
        # JSON mode, because strict checking there still takes a list for a tuple
        return Config.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        where = f"{path}: " if path is not None else ""
        faults = [_explain(fault) for fault in error.errors()]
        raise UsageError("\n".join(where + fault for fault in faults)) from None
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the configuration holds a value that is not plain data: {error}"
        ) from None


def dump_config(config: Config) -> str:
    """Write a configuration as TOML that `load_config` reads back to an equal one."""
    import tomli_w

    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def _value(text: str) -> Any:
    """Read the right-hand side of an override as TOML; what is not TOML is a plain string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _place(data: dict[str, Any], keys: list[str], value: Any) -> None:
    for depth, key in enumerate(keys[:-1]):
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            name = ".".join(keys[: depth + 1])
            raise UsageError(f"--set {'.'.join(keys)}: {name} is a value, not a section")
    data[keys[-1]] = value


def _explain(fault: Any) -> str:
    """Turn one pydantic fault into a line that says what to write instead."""
    location = [str(part) for part in fault["loc"]]
    name = ".".join(location) or "configuration"
    if fault["type"] == "extra_forbidden":
        return f"unknown key {name!r}; {nearest(location[-1], _keys(location[:-1]))}"
    given = "" if isinstance(fault["input"], dict) else f", got {fault['input']!r}"
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}{given}"


def _keys(location: list[str]) -> list[str]:
    model: type[BaseModel] = Config
    for part in location:
        annotation = model.model_fields[part].annotation
        options = [annotation, *get_args(annotation)]
        model = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return list(model.model_fields)
