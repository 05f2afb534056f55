"""Plans for a changed cluster or another demand, beside the plan for the present one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from apiserver.kinds.identity import Key
from controller.commands.plan.changes import Changes, apply_changes, with_loads
from controller.commands.plan.statuses import with_capacities
from controller.planning.decision import Plan, VariantDecision
from controller.planning.inputs import PlanningInputs
from controller.planning.inventory import NodeAddition
from controller.planning.load import MOST_RATE
from controller.planning.problem import PER_MILLE
from controller.planning.snapshot import Snapshot
from controller.planning.wording import count
from controller.sizing.records import SizingSettings, VariantFacts

MOST_NODES: Final = 64
_SHAPE: Final = re.compile(r"([^\s]{1,63})x([1-9][0-9]{0,3})")
MOST_FACTOR: Final = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is assumed. Without anything, the present cluster."""

    addition: NodeAddition | None = None
    drained: str = ""
    """Name of a node; empty for none."""

    factor: float = 1.0
    """Factor on the demand."""

    model: str = ""
    """The model whose demand it applies to, as NAMESPACE/MODEL; empty for all."""

    @property
    def text(self) -> str:
        """The question in words."""
        parts = []
        if self.addition:
            made = self.addition
            parts.append(f"{count(made.nodes, 'more node')} of {made.accelerators} {made.accelerator}")
        if self.drained:
            parts.append(f"{self.drained} drained")
        if self.factor != 1:
            parts.append(f"{self.factor:g} times the demand of {self.model or 'every model'}")
        return ", ".join(parts) or "nothing changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """One model in both plans."""

    namespace: str
    model_id: str
    unmet: tuple[float, float]
    """Missing share of the required capacity, before and after."""

    replicas: tuple[int, int]
    cost: tuple[Decimal, Decimal]

    @property
    def is_changed(self) -> bool:
        """Whether the plans differ."""
        return any(before != after for before, after in (self.unmet, self.replicas, self.cost))


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The plan for a question, beside the one for the present cluster."""

    question: Question
    snapshot: Snapshot
    plan: Plan
    before: Plan
    effects: tuple[Effect, ...]


def read_question(query: Mapping[str, str]) -> tuple[Question, Sequence[str]]:
    """Return the question in the fields of a form, and what is wrong with them.

    Fields: `type` as `ACCELERATORxCOUNT` and `nodes`, `drain`, `factor`, `model`; any may be missing or
    empty.
    """
    problems: list[str] = []
    addition = None
    nodes = _number(query.get("nodes") or "0", "nodes", 0, MOST_NODES, problems)
    if nodes != int(nodes):
        problems.append("nodes: must be a whole number")
    if nodes and not problems:
        shape = _SHAPE.fullmatch(query.get("type") or "")
        if shape is None:
            problems.append("type: must be ACCELERATORxCOUNT with a count from 1 to 9999, such as H100x8")
        else:
            addition = NodeAddition(accelerator=shape[1], accelerators=int(shape[2]), nodes=int(nodes))
    factor = _number(query.get("factor") or "1", "factor", 0, MOST_FACTOR, problems)
    question = Question(
        addition=addition,
        drained=(query.get("drain") or "").strip(),
        factor=factor,
        model=(query.get("model") or "").strip(),
    )
    return question, problems


def _number(text: str, name: str, least: float, most: float, problems: list[str]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if least <= value <= most:
        return value
    problems.append(f"{name}: must be a number from {least:g} to {most:g}, was {text[:40]!r}")
    return least


def plan_of(inputs: PlanningInputs) -> Plan:
    """Return the plan for inputs."""
    from controller.planning.plan import plan  # noqa: PLC0415 (loading the solver takes a second)

    return plan(inputs.snapshot, replace(inputs.settings, names_all=True))


def size_inputs(
    inputs: PlanningInputs, facts: Mapping[Key, VariantFacts], sizing: SizingSettings
) -> PlanningInputs:
    """Return inputs with the capacities of all variants."""
    return replace(inputs, snapshot=with_capacities(inputs.snapshot, facts, sizing))


def change_inputs(inputs: PlanningInputs, question: Question) -> tuple[PlanningInputs, Sequence[str]]:
    """Return the inputs as a question assumes them, and what is wrong with it."""
    snapshot, problems = inputs.snapshot, []
    if question.factor != 1:
        loads = [
            load for load in snapshot.loads if question.model in ("", f"{load.namespace}/{load.model_id}")
        ]
        if question.model and not loads:
            problems.append(f"model: no model {question.model!r} has a known demand")
        factor = question.factor
        snapshot = with_loads(
            snapshot,
            [
                replace(
                    load,
                    requests_per_second=_scale(load.requests_per_second, factor),
                    upper_requests_per_second=min(MOST_RATE, load.upper_requests_per_second * factor),
                    required_requests_per_second=min(MOST_RATE, load.required_requests_per_second * factor),
                    releasable_requests_per_second=_scale(load.releasable_requests_per_second, factor),
                )
                for load in loads
            ],
        )
    changes = Changes(
        additions=[question.addition] if question.addition else [],
        drained=[question.drained] if question.drained else [],
    )
    after, mistakes = apply_changes(replace(inputs, snapshot=snapshot), changes)
    return after, [*problems, *(text.removeprefix("--") for text in mistakes)]


def _scale(rate: float | None, factor: float) -> float | None:
    return None if rate is None else min(MOST_RATE, rate * factor)


def answer_to(question: Question, after: PlanningInputs, before: Plan) -> Answer:
    """Return the answer to a question about changed inputs; `before` is the plan for the present ones."""
    made = plan_of(after)
    costs = {item.key: item.cost_per_replica for item in after.snapshot.variants}
    return Answer(
        question=question,
        snapshot=after.snapshot,
        plan=made,
        before=before,
        effects=tuple(_effects(before, made, costs)),
    )


def _effects(before: Plan, after: Plan, costs: Mapping[Key, Decimal]) -> Iterator[Effect]:
    first, then = _by_model(before), _by_model(after)
    for model in sorted(then, key=lambda key: (min(item.priority for item in then[key]), key)):
        pair = first.get(model, ()), then[model]
        unmet = [max((item.unmet_per_mille for item in items), default=0) / PER_MILLE for items in pair]
        replicas = [sum(item.replicas for item in items) for items in pair]
        cost = [sum((costs[item.key] * item.replicas for item in items), start=Decimal(0)) for items in pair]
        yield Effect(
            namespace=model[0],
            model_id=model[1],
            unmet=(unmet[0], unmet[1]),
            replicas=(replicas[0], replicas[1]),
            cost=(cost[0], cost[1]),
        )


def _by_model(plan: Plan) -> Mapping[Key, Sequence[VariantDecision]]:
    models: dict[Key, list[VariantDecision]] = {}
    for item in plan.decisions:
        models.setdefault((item.namespace, item.model_id), []).append(item)
    return models
