"""The nouns of the package: frozen records, validated when made, no I/O.

A record that is written to disk on its own carries `schema_version`; a reader of another version
refuses it instead of guessing. Floats are finite everywhere: a value that does not exist is `None`.
"""

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from sandmle.display import facts_table

Direction = Literal["max", "min"]
GradeStatus = Literal["ok", "missing", "invalid", "grader_error"]
ExecStatus = Literal["ok", "error", "timeout", "oom", "killed", "infra"]
RewardMode = Literal["cumulative", "exclusive", "continuous"]
Feedback = Literal["none", "validity", "score"]
Side = Annotated[int, Field(ge=1, le=4096)]  # pixels
StopReason = Literal[
    "submitted",
    "max_turns",
    "context_limit",
    "length",
    "wall_limit",
    "model_error",
    "infra_error",
    "grader_error",
]

Number = TypeVar("Number", int, float)

MILESTONES = ("median", "bronze", "silver", "gold")
REWARD_PARTS = ("format", "execute", *MILESTONES, "skill")


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a record that could not be read, in one line."""
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else fault["msg"]


def _strict(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    json.dumps(value, allow_nan=False)  # JSON has no NaN, and neither has a file of ours
    return value


JsonDict = Annotated[dict[str, JsonValue], AfterValidator(_strict)]


class Record(BaseModel):
    """A frozen value that refuses unknown fields and non-finite floats."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# --- what a task is made from ---------------------------------------------------------------------


class DatasetStats(Record):
    """Size and balance of the data that a task imitates."""

    sample_count: int = Field(ge=0)
    is_imbalanced: bool


class TargetInfo(Record):
    """What is predicted; `cardinality` is None for an open target."""

    type: str
    cardinality: int | None
    distribution: str


class Feature(Record):
    """One column in the abstract: no name from any story."""

    name: str
    abstract: str


class TaskDNA(Record):
    """The structure of a task without its story (the paper's first step)."""

    modality: str
    task_type: str
    dataset_stats: DatasetStats
    target_info: TargetInfo
    features: tuple[Feature, ...]
    extra: JsonDict = {}


class Scenario(Record):
    """The story that a task is told in."""

    domain: str
    scenario: str
    justification: str


class Mutation(Record):
    """One systematic degradation of the data; `recovery` says in a sentence how to undo it."""

    name: str
    parameters: JsonDict
    recovery: str


class Dimensions(Record):
    """Rows of train and hidden test, and feature columns."""

    n_samples: int = Field(ge=1)
    n_features: int = Field(ge=0)
    n_test: int = Field(ge=1)


class MappedFeature(Record):
    """The name that an abstract feature has in the story, and how its values are drawn."""

    name: str
    generation_logic: str


class EvaluationSpecs(Record):
    """Metric, its direction, and how the milestones were derived."""

    metric: str
    direction: Direction
    thresholds_logic: str


class Provenance(Record):
    """Where a task comes from: a seed competition if any, the family or model, and versions."""

    seed_task: str | None
    source: str
    versions: dict[str, str]


class TaskSpec(Record):
    """Everything about a task, the hidden rule included; never shown where agent code runs."""

    schema_version: Literal[1] = 1
    id: str
    task_name: str
    domain_context: str
    dna: TaskDNA
    scenario: Scenario
    mutations: tuple[Mutation, ...] = Field(max_length=3)
    final_dimensions: Dimensions
    feature_mapping: dict[str, MappedFeature]
    hidden_rule_logic: str
    evaluation_specs: EvaluationSpecs
    seed: tuple[int, ...]
    provenance: Provenance
    parameters: JsonDict = {}
    blank_target: bool = False


# --- the task folder ------------------------------------------------------------------------------


class Column(Record):
    """One column of a submission.

    `label`: one of `choices`, as text. `number`: finite, within `minimum` and `maximum` (inclusive,
    None is unbounded). `labels`: at most `max_items` different labels, best first, separated by
    blanks; any text if `choices` is None. `mask`: runs of pixels of a picture of `shape` (height,
    width). `boxes`: at most `max_items`, of five numbers each. `text`: anything, also nothing.
    """

    name: str = Field(min_length=1)
    kind: Literal["label", "number", "labels", "mask", "boxes", "text"]
    choices: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    max_items: int | None = Field(default=None, ge=1)
    shape: tuple[Side, Side] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.kind == "label" and not self.choices:
            raise ValueError(f"column {self.name!r}: a label column needs its choices")
        if self.kind in ("labels", "boxes") and self.max_items is None:
            raise ValueError(f"column {self.name!r}: a {self.kind} column needs max_items")
        if self.kind == "mask" and self.shape is None:
            raise ValueError(f"column {self.name!r}: a mask column needs the shape of the picture")
        if self.choices is not None and len(set(self.choices)) != len(self.choices):
            raise ValueError(f"column {self.name!r}: a choice is listed twice")
        if self.choices is not None and "" in self.choices:
            raise ValueError(f"column {self.name!r}: an empty cell is missing, not a choice")
        return self


class SubmissionSchema(Record):
    """What a valid submission looks like; `id_column` is None only for imported tasks.

    `row_sum`: the number columns of each row add up to it (class probabilities, shares).
    """

    id_column: str | None
    columns: tuple[Column, ...] = Field(min_length=1)
    n_rows: int = Field(ge=1)
    row_sum: float | None = None

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [column.name for column in self.columns] + [self.id_column]
        if len(set(names)) != len(names):
            raise ValueError(f"two columns share a name: {', '.join(map(str, names))}")
        return self


class Milestones(Record):
    """Four thresholds in the metric's own units, and the sample submission's score.

    Real boards have ties, so order is not enforced here; `paper_monotone` is a check of its own.
    """

    direction: Direction
    median: float
    bronze: float
    silver: float
    gold: float
    sample_score: float | None = None


class MetricRef(Record):
    """A metric by name, with its parameters."""

    name: str
    params: JsonDict = {}


class Rung(Record):
    """One script of the ladder with its score on the shipped test and on the calibration pool."""

    name: str
    kind: Literal["dummy", "generic", "reference"]
    test: float
    pool: float | None = None


class TaskCard(Record):
    """The content of `task.json`: all that may be known of a task, and no hidden rule or seed.

    `sound`: the shipped rows tell the milestones apart, by every check of the gate; None where no
    gate has looked.
    """

    schema_version: Literal[1] = 1
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$")
    title: str
    modality: str
    metric: MetricRef
    submission: SubmissionSchema
    milestones: Milestones
    ladder: tuple[Rung, ...] = ()
    sound: bool | None = None
    files: dict[str, str]

    @property
    def floor(self) -> float | None:
        """Return the best score that needs no learning: of the dummies and the sample."""
        scores = [rung.test for rung in self.ladder if rung.kind == "dummy"]
        if self.milestones.sample_score is not None:
            scores.append(self.milestones.sample_score)
        better = max if self.milestones.direction == "max" else min
        return better(scores) if scores else None


class Check(Record):
    """One check of a task: `passed` is None where it could not be made."""

    name: str
    passed: bool | None
    value: JsonValue = None
    limit: JsonValue = None
    detail: str = ""


# --- execution, grade, reward ---------------------------------------------------------------------


class Limits(Record):
    """What one execution may use; sizes in MB are 10^6 bytes, times are seconds.

    Not every sandbox enforces all of them: its `Isolation` and `docs/sandbox.md` say which.
    """

    wall_s: float = Field(default=90.0, gt=0)
    cpu_s: float | None = Field(default=None, gt=0)
    memory_mb: int = Field(default=2048, gt=0)
    disk_mb: int = Field(default=64, gt=0)
    processes: int = Field(default=128, gt=0)
    output_bytes: int = Field(default=65536, gt=0)
    network: bool = False
    gpu: tuple[int, ...] = ()

    def within(self, wall_s: float | None) -> "Limits":
        """Return the same limits with another wall time; None leaves it."""
        return self if wall_s is None else self.model_copy(update={"wall_s": wall_s})


class Isolation(Record):
    """What a sandbox guarantees on this machine, and why each stronger mode was refused.

    `fs_hidden`: nothing but the workspace and the interpreter can be read; `fs_absent`: nor can it
    be told that it exists; `net`: no network; `sockets`: no socket of another process in the file
    system either; `kill_all`: nothing outlives an execution; `signals`:
    none reach other processes; `memory_limit`, `process_limit`, `disk_quota`: bounded for all of an
    execution's processes together; `landlock`: the kernel's version of it, 0 for none.
    """

    mode: str
    refused: dict[str, str] = {}
    fs_hidden: bool = False
    fs_absent: bool = False
    net: bool = False
    sockets: bool = False
    kill_all: bool = False
    signals: bool = False
    memory_limit: bool = False
    process_limit: bool = False
    disk_quota: bool = False
    caps_dropped: bool = False
    seccomp: bool = False
    landlock: int = 0


class ExecResult(Record):
    """What became of one execution; `infra` is our failure and never counts against the agent.

    `survivors`: how many processes the program left running when it ended, all killed then; None
    where that is not known (it did not end by itself, or the sandbox is `bare`).
    `denied`: system calls that were refused and that only somebody makes who looks for a way out,
    by name; None where the sandbox hears nothing of them.
    """

    status: ExecStatus
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    survivors: int | None = None
    denied: tuple[str, ...] | None = None


class Grade(Record):
    """A judged submission: `score` only when `status` is ok; `reason` says why when it is not."""

    status: GradeStatus
    score: float | None = None
    reached: dict[str, bool] = {}
    reason: str = ""

    @model_validator(mode="after")
    def _score_means_ok(self) -> Self:
        scored = self.score is not None, set(self.reached) == set(MILESTONES)
        if scored != ((True, True) if self.status == "ok" else (False, False)):
            raise ValueError("a grade has a score and milestones exactly when its status is ok")
        return self


class RewardRule(Record):
    """How the parts of a reward are weighted; the largest possible total is 1.

    In `exclusive` mode only the best milestone pays, so the largest milestone weight counts.
    """

    mode: RewardMode
    weights: dict[str, float]

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        unknown = sorted(set(self.weights) - set(REWARD_PARTS))
        if unknown:
            known = ", ".join(REWARD_PARTS)
            raise ValueError(f"unknown reward part {unknown[0]!r}; the parts are {known}")
        if any(weight < 0 for weight in self.weights.values()):
            raise ValueError("a reward weight is negative")
        tiers = [self.weights.get(name, 0.0) for name in MILESTONES]
        rest = [self.weights[name] for name in self.weights if name not in MILESTONES]
        total = math.fsum(rest) + (max(tiers) if self.mode == "exclusive" else math.fsum(tiers))
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the reward weights sum to {total:.6g}, not to 1")
        if self.mode == "exclusive" and tiers != sorted(tiers):
            raise ValueError("a better milestone pays less than a worse one")
        if self.mode == "continuous" and any(tiers):
            raise ValueError("a continuous reward pays for skill, not for milestones")
        if self.mode != "continuous" and self.weights.get("skill"):
            raise ValueError("skill is paid in continuous mode only")
        return self


class Reward(Record):
    """A training scalar: `total` is the sum of weight times part, each part within [0, 1]."""

    total: float
    parts: dict[str, float]
    weights: dict[str, float]
    mode: RewardMode


# --- episodes -------------------------------------------------------------------------------------


class Action(Record):
    """What a reply asks for: run `code`, submit, be told something (`info`), or nothing that could
    be understood (`error`).
    """

    kind: Literal["code", "submit", "info", "none"]
    code: str | None = None
    think: str | None = None
    format_ok: bool = False
    error: str | None = None


class Usage(Record):
    """Tokens and dollars of one reply or one trajectory; None where they are not known."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None

    @classmethod
    def total(cls, usages: Sequence["Usage"]) -> "Usage":
        """Return the sum; a count is None if it is so in any of them, or if there are none."""
        return cls(
            prompt_tokens=_total([usage.prompt_tokens for usage in usages]),
            completion_tokens=_total([usage.completion_tokens for usage in usages]),
            usd=_total([usage.usd for usage in usages]),
        )


def _total(counts: Sequence[Number | None]) -> Number | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


class Seconds(Record):
    """Where the time of a turn went."""

    model: float = 0.0
    execution: float = 0.0


class NodeRecord(Record):
    """The place of a turn in a search over programs, and what the search made of it.

    `parents` are the indices of the turns that it came from: none for a draft, two for a crossover.
    `metric` is what the agent's own validation gave, in the units of the task's metric. `fault`
    says why the program is of no use; without one the search may choose it and build on it.
    """

    operator: str
    parents: tuple[int, ...] = ()
    metric: float | None = None
    fault: str = ""
    summary: str = ""


class Turn(Record):
    """One reply and what came of it.

    The token ids of a sampled reply are not here but in `tokens/<id>.npz` of the run folder.
    `hidden_grade` judges the submission as this turn left it; it is recorded, never shown.
    `evicted` are the indices of the turns that were left out of the conversation just before this
    reply: it begins a new segment for training. `node` is there where a scaffold searches.
    """

    index: int
    evicted: tuple[int, ...] = ()
    completion: str
    action: Action
    result: ExecResult | None = None
    observation: str | None = None
    usage: Usage = Usage()
    format_ok: bool = False
    submission_sha256: str | None = None
    hidden_grade: Grade | None = None
    seconds: Seconds = Seconds()
    node: NodeRecord | None = None


class Mask(Record):
    """Whether a whole trajectory is kept out of the loss and of its group's baseline, and why."""

    masked: bool = False
    why: str | None = None


class ErrorRecord(Record):
    """A failure attributed to one boundary."""

    boundary: Literal["task", "sandbox", "model", "grading", "internal"]
    type: str
    message: str


class Trajectory(Record):
    """The record of one episode.

    `k` numbers the members of a `group`: runs of one task that are compared with each other.
    `flags` names what the episode tried that no honest one needs; it never changes the reward.
    """

    schema_version: Literal[1] = 1
    id: str
    task_id: str
    task_hash: str
    group: str
    k: int
    scaffold: str
    policy: str
    sampling: JsonDict = {}
    seed: int
    feedback: Feedback
    isolation: Isolation
    turns: tuple[Turn, ...]
    stop_reason: StopReason
    grade: Grade
    reward: Reward | None
    mask: Mask = Mask()
    flags: tuple[str, ...] = ()
    usage: Usage = Usage()
    error: ErrorRecord | None = None
    versions: dict[str, str] = {}

    def _repr_html_(self) -> str:
        facts = {
            "task": self.task_id,
            "policy": self.policy,
            "turns": len(self.turns),
            "ended": self.stop_reason.replace("_", " "),
            "grade": self.grade.status.replace("_", " "),
            "score": self.grade.score,
            "reached": ", ".join(n for n in MILESTONES if self.grade.reached.get(n)) or "nothing",
            "reward": self.reward.total if self.reward else None,
            "flags": ", ".join(self.flags) or "none",
        }
        return facts_table(f"Trajectory {self.id}", facts)


class RunManifest(Record):
    """The content of `run.json`: what was run, on what, with which versions."""

    schema_version: Literal[1] = 1
    id: str
    command: str
    config: dict[str, Any]
    corpus_hash: str
    versions: dict[str, str]
    started: str
    host: JsonDict
