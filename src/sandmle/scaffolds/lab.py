"""Where searches work: a program is proposed, run, reviewed and recorded, whatever becomes of it.

A search is control flow over `Lab.grow`. What a model or its program does wrong costs one node. The
episode ends (`Stop`) when its programs or its time are used up, and by what is no fault of the
agent: a sandbox that fails, a model that fails three times in a row.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import NamedTuple

from sandmle.env.workbench import Outcome, Trial, Workbench
from sandmle.errors import ModelError
from sandmle.llm.base import LLM, Message
from sandmle.scaffolds.extract import Program, read_program
from sandmle.scaffolds.listener import Listener, Patience
from sandmle.scaffolds.operators import Pack, proposal, reviewing
from sandmle.scaffolds.review import Review, fallback, review
from sandmle.scaffolds.tree import Node, Tree
from sandmle.scaffolds.verdict import check_budget, conclude, plain_fault, shown
from sandmle.types import Action, NodeRecord, Seconds, Turn, Usage

TRIES = 3  # replies that an operator may take to write a program
Doubt = Callable[[Tree, float], str]  # why a metric is not believed; empty if it is


class Wish(NamedTuple):
    """A node that a search wants: an operator, and what it is to work on."""

    operator: str
    parents: tuple[Node, ...]


class _Proposed(NamedTuple):
    wish: Wish
    listener: Listener
    program: Program


class Lab:
    """One episode of a search; `tree` is what it has grown, `rng` its source of chance."""

    def __init__(
        self, workbench: Workbench, llm: LLM, pack: Pack, doubt: Doubt | None = None
    ) -> None:
        self.tree = Tree(workbench.task.card.milestones.direction)
        self.rng = Random(workbench.seed)
        self._workbench, self._llm = workbench, llm
        self._pack, self._doubt = pack, doubt
        self._patience = Patience()
        workbench.journal.event("start", task=workbench.task.id, seed=workbench.seed)

    def play(self, search: Callable[["Lab"], None]) -> Outcome:
        """Search until it is done or the episode ends; the best node's submission counts."""
        return conclude(self._workbench, self.tree, lambda: search(self))

    def grow(self, operator: str, *parents: Node) -> Node:
        """Make one node below these parents (default: below the root)."""
        return self.grow_all([Wish(operator, parents or (self.tree.root,))])[0]

    def grow_all(self, wishes: Sequence[Wish]) -> list[Node]:
        """Make several nodes, their programs run side by side; fewer if the steps do not suffice.

        What is asked of the model, and what is recorded, is in the order of the wishes.
        """
        check_budget(self._workbench)
        left = self._workbench.config.max_turns - len(self._workbench.turns)
        proposed = [self._propose(wish, i, left - i) for i, wish in enumerate(wishes[:left])]
        programs = [one.program.code for one in proposed]
        if len(programs) == 1:
            trials = [self._run(programs[0])]
        else:
            with ThreadPoolExecutor(len(programs)) as pool:
                trials = list(pool.map(self._run, programs))
        return [self._judge(one, trial) for one, trial in zip(proposed, trials, strict=True)]

    def _propose(self, wish: Wish, place: int, left: int) -> _Proposed:
        workbench = self._workbench
        turn = len(workbench.turns) + place
        listener = Listener(self._llm, workbench.journal, turn, wish.operator, self._patience)
        messages = proposal(self._pack, wish.operator, wish.parents, self.tree, workbench, left)
        try:
            program = write_program(listener, messages)
        except ModelError as error:
            program = Program(error=f"the model gave no reply: {error}")
        return _Proposed(wish, listener, program)

    def _run(self, code: str) -> Trial | None:
        return self._workbench.trial(code) if code else None

    def _judge(self, proposed: _Proposed, trial: Trial | None) -> Node:
        wish, listener, program = proposed
        node = Node(
            id=len(self._workbench.turns),
            operator=wish.operator,
            parents=wish.parents,
            plan=program.plan,
            code=program.code,
            fault=program.error,
        )
        if trial is not None:
            node.output = shown(self._workbench, trial)
            node.seconds = trial.result.wall_s
            node.fault = plain_fault(self._workbench, trial)
            node.snapshot = trial.snapshot
        if trial is not None and not node.fault:
            found = self._review(listener, node, trial)
            node.summary, node.fault = found.summary, self._objection(found)
            node.metric = None if node.fault else found.metric
        self.tree.add(node)
        self._record(node, proposed, trial)
        return node

    def _review(self, listener: Listener, node: Node, trial: Trial) -> Review:
        listener.role = "review"
        messages = reviewing(self._workbench, node.code, node.output)
        try:
            return review(listener, messages, trial.result.stdout)
        except ModelError:
            return fallback(trial.result.stdout)

    def _objection(self, found: Review) -> str:
        """Return the fault that a review has found; empty if there is none."""
        if found.is_bug:
            return f"the review found a fault: {found.summary}"
        if found.metric is None:
            return "no validation metric was printed"
        return self._doubt(self.tree, found.metric) if self._doubt else ""

    def _record(self, node: Node, proposed: _Proposed, trial: Trial | None) -> None:
        program, listener, snapshot = proposed.program, proposed.listener, node.snapshot
        usable = not program.error
        action = Action(
            kind="code" if node.code else "none",
            code=node.code or None,
            format_ok=usable,
            error=program.error or None,
        )
        place = NodeRecord(
            operator=node.operator,
            parents=tuple(one.id for one in node.parents if one is not self.tree.root),
            metric=node.metric,
            fault=node.fault,
            summary=node.summary,
        )
        self._workbench.record(
            Turn(
                index=node.id,
                completion=program.raw,
                action=action,
                result=trial.result if trial else None,
                observation=node.output or None,
                usage=Usage.total(listener.usages),
                format_ok=usable,
                submission_sha256=snapshot.digest if snapshot else None,
                hidden_grade=snapshot.grade if snapshot else None,
                seconds=Seconds(
                    model=listener.seconds, execution=trial.result.wall_s if trial else 0.0
                ),
                node=place,
            )
        )


def write_program(llm: LLM, messages: Sequence[Message]) -> Program:
    """Ask for a program, and again with what is wrong until a reply can be used.

    After the last try the last reply counts as it is: one that does not compile is run, so that the
    model is shown what Python says. Raises the `ModelError` of the model.
    """
    talk = list(messages)
    for left in reversed(range(TRIES)):
        reply = llm.complete(talk)
        program = read_program(reply.text)
        if reply.cut_off:
            program = Program(error="the reply was cut off at its token limit", raw=reply.text)
        if not program.error or not left:
            break
        again = (
            f"This cannot be used: {program.error}. "
            "Reply with the plan and the whole program in one fenced python block."
        )
        talk += [Message("assistant", reply.text), Message("user", again)]
    return program
