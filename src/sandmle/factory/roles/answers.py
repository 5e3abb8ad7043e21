"""What the Data Strategist answers with, in the paper's words."""

from typing import Annotated, Literal

from pydantic import Field

from sandmle.types import (
    DatasetStats,
    Direction,
    Feature,
    JsonDict,
    MappedFeature,
    Record,
    SubmissionSchema,
    TargetInfo,
    TaskDNA,
)

Sentence = Annotated[str, Field(min_length=20, max_length=2000)]
Short = Annotated[str, Field(min_length=3, max_length=120)]
Modality = Literal["tabular", "image", "text", "audio", "graph", "multimodal"]
N_SCENARIOS = 5
N_MUTATIONS = 3


class Dna(Record):
    """Step 1: the structure, without the story."""

    modality: Modality
    task_type: Short
    dataset_stats: DatasetStats
    target_info: TargetInfo
    features: tuple[Feature, ...] = Field(min_length=1, max_length=60)
    difficulty: Sentence

    def as_task_dna(self) -> TaskDNA:
        """Return it as the record of the specification."""
        plain = {k: v for k, v in dict(self).items() if k != "difficulty"}
        return TaskDNA(**plain, extra={"hard": self.difficulty})


class Place(Record):
    """One industry scenario; `features` says of each abstract feature why it would be there."""

    domain: Short
    scenario: Short
    justification: Sentence
    modality: Sentence
    features: dict[str, Sentence]


class Places(Record):
    """Step 2: exactly five of them."""

    scenarios: tuple[Place, ...] = Field(min_length=N_SCENARIOS, max_length=N_SCENARIOS)


class Fault(Record):
    """One mutation; `recovery` says in a sentence how it is undone."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,40}$")]
    parameters: JsonDict
    recovery: Sentence


class Faults(Record):
    """Step 3: exactly three of them, different ones."""

    mutations: tuple[Fault, ...] = Field(min_length=N_MUTATIONS, max_length=N_MUTATIONS)


class FinalDimensions(Record):
    """How many rows: the paper's 50 to 200 to learn from, and hidden ones to measure on."""

    n_samples: int = Field(ge=50, le=200)
    n_features: int = Field(ge=1, le=60)
    n_test: int = Field(ge=100, le=1000)


class Measured(Record):
    """How a submission is judged."""

    metric: str
    direction: Direction
    thresholds_logic: Sentence


class Specification(Record):
    """Step 4: everything that the ML Developer needs to know."""

    task_name: Short
    domain_context: Sentence
    final_dimensions: FinalDimensions
    feature_mapping: dict[str, MappedFeature] = Field(min_length=1)
    hidden_rule_logic: Annotated[str, Field(min_length=120, max_length=6000)]
    evaluation_specs: Measured
    submission: SubmissionSchema
