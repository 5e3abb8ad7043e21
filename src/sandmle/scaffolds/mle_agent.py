"""MLE-Agent: one long conversation of JSON actions: ask, try a program, run one that counts."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sandmle.env.packages import installed
from sandmle.env.protocol import cut, neutralise
from sandmle.env.workbench import SUBMISSION, Outcome, Trial, Workbench
from sandmle.errors import AnswerError, ContextError, ModelError
from sandmle.files import render
from sandmle.llm.base import LLM, Completion, Message, estimate_tokens
from sandmle.llm.structured import ask, read_answer
from sandmle.scaffolds.base import SCAFFOLDS, Preset
from sandmle.scaffolds.listener import Listener, Patience, Stop
from sandmle.scaffolds.review import METRIC_LINE, printed_metric
from sandmle.scaffolds.tree import Node, Tree
from sandmle.scaffolds.verdict import check_budget, conclude, plain_fault, shown
from sandmle.types import Action, NodeRecord, Record, Seconds, Turn, Usage

INFO = ("overview", "sample_submission", "data_structure", "data_path", "output_path")
_LINES, _LINE = 6, 400  # of the sample submission
_SORTS: dict[str, Literal["code", "info"]] = {
    "request_info": "info", "validate_code": "code", "execute_code": "code",
}  # fmt: skip


class Repairs(Record):
    """`repairs`: how often a reply that is no action is tried to be mended by another call."""

    repairs: int = Field(default=3, ge=0)


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid")

    info_type: Literal[INFO] | None = None  # type: ignore[valid-type]
    code: str | None = None


class Call(BaseModel):
    """One action, with the one parameter that it takes."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["request_info", "validate_code", "execute_code"]
    params: _Params

    @model_validator(mode="after")
    def _has_what_it_takes(self) -> "Call":
        takes = "info_type" if self.action == "request_info" else "code"
        if self.params.model_fields_set != {takes} or getattr(self.params, takes) is None:
            raise ValueError(f"the params of {self.action} are {takes} and nothing else")
        return self


def play_mle_agent(workbench: Workbench, llm: LLM, constants: Repairs) -> Outcome:
    """Play one episode, which ends with its actions, its time or its context."""
    chat = Chat(workbench, llm, constants)
    return conclude(workbench, chat.tree, chat.run)


class Chat:
    """The conversation; each program that is run is a node, those that count are in the tree."""

    def __init__(self, workbench: Workbench, llm: LLM, constants: Repairs) -> None:
        self.tree = Tree(workbench.task.card.milestones.direction)
        self._workbench, self._llm, self._constants = workbench, llm, constants
        self._count = getattr(llm, "count", estimate_tokens)
        self._patience = Patience()
        self._messages = self._opening()
        workbench.journal.event("start", task=workbench.task.id, messages=self._messages)

    def run(self) -> None:
        """Go on until the episode ends."""
        while True:
            check_budget(self._workbench)
            if self._count(self._messages) > self._workbench.config.context_tokens:
                raise Stop("context_limit")
            self._step()

    def _step(self) -> None:
        """Ask for one action and carry it out; a reply that is none uses it up."""
        turn = len(self._workbench.turns)
        listener = Listener(self._llm, self._workbench.journal, turn, "act", self._patience)
        try:
            reply = listener.complete(self._messages)
        except ContextError:
            raise Stop("context_limit") from None
        except ModelError:
            return  # nothing was said: the same is asked again, until it is one failure too many
        call, action = self._understand(listener, reply)
        trial = node = None
        if call is None:
            text = f"Nothing was done: {action.error}. Reply with one JSON object."
        elif call.action == "request_info":
            text = self._tell(call.params.info_type or "")
        else:
            trial = self._workbench.trial(action.code or "")
            node = self._node(call.action, action.code or "", trial)
            text = shown(self._workbench, trial)
        text = self._with_budget(text)
        self._messages += [Message("assistant", reply.text), Message("user", text)]
        self._record(listener, reply.text, action, text, trial, node)

    def _understand(self, listener: Listener, reply: Completion) -> tuple[Call | None, Action]:
        """Return the action of a reply, mended by further calls if need be, and its record."""
        fault, call, format_ok = "", None, False
        try:
            if reply.cut_off:
                raise AnswerError("the reply was cut off at its token limit")
            call, format_ok = read_answer(reply.text, Call), True
        except AnswerError as error:
            fault = str(error)
            call = self._repair(listener, reply.text, fault)
        if call is None:
            return None, Action(kind="none", error=fault)
        kind = _SORTS[call.action]
        return call, Action(kind=kind, code=call.params.code, format_ok=format_ok)

    def _repair(self, listener: Listener, reply: str, fault: str) -> Call | None:
        """Return what another call makes of a reply; it knows nothing of the conversation."""
        if not self._constants.repairs:
            return None
        listener.role = "repair"
        messages = [Message("user", _text("mle_agent_repair", reply=reply, fault=fault))]
        try:
            return ask(listener, messages, Call, self._constants.repairs).value
        except ModelError:
            return None

    def _node(self, operator: str, code: str, trial: Trial) -> Node:
        """Return the node of a program that has run; it may be chosen if it was to count."""
        fault = plain_fault(self._workbench, trial)
        metric = None if fault else printed_metric(trial.result.stdout)
        if not fault and metric is None:
            fault = "no validation metric was printed"
        node = Node(
            id=len(self._workbench.turns),
            operator=operator,
            code=code,
            metric=metric,
            fault=fault,
            snapshot=trial.snapshot,
        )
        return self.tree.add(node) if operator == "execute_code" else node

    def _tell(self, kind: str) -> str:
        task = self._workbench.task
        if kind == "overview":
            return task.description.strip()
        if kind == "data_structure":
            return self._workbench.preview()
        if kind == "data_path":
            return "./input/"
        if kind == "output_path":
            return f"./{SUBMISSION}"
        path = task.public / "sample_submission.csv"
        if not path.is_file():
            return "there is no sample submission"
        with path.open(encoding="utf-8", errors="replace") as stream:
            lines = [stream.readline(10_000) for _ in range(_LINES)]
        return "\n".join(cut(neutralise(line), _LINE) for line in lines if line)

    def _with_budget(self, text: str) -> str:
        config, left = self._workbench.config, self._workbench.seconds_left()
        text += f"\nactions left: {config.max_turns - len(self._workbench.turns) - 1}"
        if left is not None and config.wall_s is not None:
            text += f"\nseconds left: {max(0.0, left):.0f} of {config.wall_s:.0f}"
        return text

    def _opening(self) -> list[Message]:
        workbench = self._workbench
        system = _text(
            "mle_agent_system",
            card=workbench.task.card,
            info_types=INFO,
            limits=workbench.limits,
            max_turns=workbench.config.max_turns,
            metric_line=METRIC_LINE,
            packages=installed(),
        )
        begin = f"The competition is called {workbench.task.card.title!r}. Begin."
        return [Message("system", system), Message("user", begin)]

    def _record(
        self,
        listener: Listener,
        completion: str,
        action: Action,
        observation: str,
        trial: Trial | None,
        node: Node | None,
    ) -> None:
        snapshot = trial.snapshot if trial else None
        place = None
        if node is not None:
            place = NodeRecord(operator=node.operator, metric=node.metric, fault=node.fault)
        self._workbench.record(
            Turn(
                index=len(self._workbench.turns),
                completion=completion,
                action=action,
                result=trial.result if trial else None,
                observation=observation,
                usage=Usage.total(listener.usages),
                format_ok=action.format_ok,
                submission_sha256=snapshot.digest if snapshot else None,
                hidden_grade=snapshot.grade if snapshot else None,
                seconds=Seconds(
                    model=listener.seconds, execution=trial.result.wall_s if trial else 0.0
                ),
                node=place,
            )
        )


def _text(name: str, **facts: Any) -> str:
    return render("sandmle.scaffolds", f"prompts/{name}.md.j2", **facts)


# the paper's evaluation (appendix A.2): 15 actions, 12 hours, 50,000 tokens read, 8,192 written
SCAFFOLDS.add(
    "mle-agent-paper",
    Preset(
        play_mle_agent,
        Repairs(),
        {
            "env.max_turns": 15,
            "env.wall_s": 43200.0,
            "env.context_tokens": 50000,
            "env.observation_chars": 8000,
            "policy.temperature": 0.0,
            "policy.turn_tokens": 8192,
            "sandbox.limits.wall_s": 43200.0,
        },
    ),
)
