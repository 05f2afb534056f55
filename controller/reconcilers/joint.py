"""What passes between decisions on bindings and the plan of everything: what they ask for, what it grants.

Both run by themselves once per interval. An ask is taken by the next plan, and its grant by the next decision
on the binding: an answer is one interval late, where engines take minutes to start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controller.observe.asks import Ask, binding_of, holds_nothing, why_not_planned
from controller.observe.binding_conditions import BindingFinding, BindingReason
from controller.observe.bound import Case
from controller.planning.decision import Decision, Plan, Reason
from controller.planning.snapshot import Snapshot, Variant
from controller.policies.history import History
from controller.policies.sharing import BindingDecision, granted_decision
from controller.sizing.records import DEFAULT_SIZING

Key = tuple[str, str]

CYCLES_WAITED: Final = 4
"""After so many intervals without an answer a binding is decided on without the plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What the plan says to one binding."""

    required: float = 0.0
    """For which it was asked, in replicas of capacity 1."""

    replicas: Mapping[Key, int] = field(default_factory=dict)
    """By what targets are called as variants."""

    message: str = ""
    """Why it is less than asked for, or what was planned."""

    is_short: bool = False
    why_not: str = ""
    """Why the plan says nothing; empty where it does."""

    has_nothing_to_place: bool = False


class Exchange:
    """Asks and grants of one leader; each side replaces its own."""

    def __init__(self, *, interval_seconds: float = DEFAULT_SIZING.interval_seconds) -> None:
        self._longest_seconds = CYCLES_WAITED * interval_seconds
        self._grants: Mapping[Key, Grant] = {}
        self._granted_seconds: float | None = None
        self._since: dict[Key, float] = {}
        self.asks: Sequence[Ask] = ()

    def ask(self, asks: Sequence[Ask], *, now_seconds: float) -> None:
        """Replace what bindings ask for."""
        self.asks = asks
        self._since = {ask.key: self._since.get(ask.key, now_seconds) for ask in asks}

    def grant(self, grants: Mapping[Key, Grant], *, now_seconds: float) -> None:
        """Replace what the plan grants."""
        self._grants, self._granted_seconds = grants, now_seconds

    def answer(self, key: Key, *, now_seconds: float) -> Grant | None:
        """Return the last grant; None while none is there yet. One that is too late is no answer."""
        heard = self._granted_seconds if key in self._grants else self._since.get(key)
        if heard is not None and now_seconds - heard > self._longest_seconds:
            return Grant(why_not=f"no plan was made for {now_seconds - heard:.0f} s")
        return self._grants.get(key)


def grants_of(asks: Iterable[Ask], snapshot: Snapshot, plan: Plan) -> Mapping[Key, Grant]:
    """Return what a plan of a snapshot grants each binding."""
    variants = {variant.key: variant for variant in snapshot.variants}
    decisions = {(item.namespace, item.name): item for item in plan.decisions}
    return {ask.key: _refusal(ask, variants) or _grant(ask, decisions) for ask in asks}


def joined(
    case: Case,
    decision: BindingDecision,
    ask: Ask,
    grant: Grant | None,
    *,
    history: History,
    now_seconds: float,
) -> tuple[BindingDecision, BindingFinding]:
    """Return a decision as the plan grants it, and what to say of that.

    Before the first plan with the targets of today, what was published last stands. `history` is that of
    before the decision.
    """
    if grant is not None and grant.why_not:
        reason = BindingReason.NOTHING_TO_PLACE if grant.has_nothing_to_place else BindingReason.NOT_PLANNED
        text = f"decided without the plan: {grant.why_not}"
        return decision, (grant.has_nothing_to_place, reason, text)
    if grant is None or grant.replicas.keys() != set(ask.variants):
        text = "the next plan will have the targets in it; until then, what was published stands"
        found = (False, BindingReason.AWAITING_PLAN, text)
        granted = _published(case)
    else:
        reason = BindingReason.TOO_LITTLE_ROOM if grant.is_short else BindingReason.ALL_PLACED
        found = (not grant.is_short, reason, grant.message)
        granted = [grant.replicas[key] for key in ask.variants]
    is_old = grant is not None and grant.required != ask.required
    detail = "the last plan was asked for something else, the next one decides" if is_old else found[2]
    placed = granted_decision(
        decision, ask.binding, granted, history=history, now_seconds=now_seconds, detail=detail
    )
    return placed, found


def _published(case: Case) -> list[int]:
    """Return the replicas of each target that stand in the status; what runs where there are none."""
    said = {
        (item.get("kind"), item.get("name")): item.get("replicas")
        for item in (case.value.get("status") or {}).get("targets") or []
    }
    found = []
    for state in case.targets:
        count = said.get((state.bound.target.kind, state.bound.target.name))
        found.append(count if isinstance(count, int) else state.current_replicas)
    return found


def _refusal(ask: Ask, variants: Mapping[Key, Variant]) -> Grant | None:
    if why := why_not_planned(ask, variants):
        return Grant(why_not=why)
    if holds_nothing(ask, variants):
        return Grant(why_not="its pods ask for no accelerators", has_nothing_to_place=True)
    return None


def _grant(ask: Ask, planned: Mapping[Key, Decision]) -> Grant:
    decisions = [planned[key] for key in ask.variants]
    short = [item for item in decisions if item.reason is Reason.SHORTAGE]
    return Grant(
        required=ask.required,
        replicas={(item.namespace, item.name): item.replicas for item in decisions},
        message="; ".join(item.message for item in short or decisions),
        is_short=bool(short),
    )


def of_variants(plan: Plan) -> Plan:
    """Return the plan without the decisions for targets of bindings, which have a status of their own."""
    own = [item for item in plan.decisions if binding_of(item.namespace, item.name) is None]
    return replace(plan, decisions=tuple(own))
