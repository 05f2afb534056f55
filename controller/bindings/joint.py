"""The exchange between decisions on bindings and the joint plan: requests of bindings, grants of the plan.

Both sides run independently, once per interval. The bindings' side sends requests, waits for the plan that
contains all of them, and publishes the grants. It never uses a grant for an earlier request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from apiserver.kinds.identity import Key
from controller.observe.binding_claims import BindingDemand, holds_nothing, why_not_planned
from controller.observe.binding_conditions import BindingCondition, BindingFinding, BindingReason
from controller.observe.binding_targets import BindingCase
from controller.observe.conditions import ConditionReason
from controller.observe.gather import GatherResult
from controller.planning.decision import Plan, Reason
from controller.policies.history import History
from controller.policies.sharing import SharedDecision, granted_decision
from controller.sizing.records import DEFAULT_SIZING

Findings = Mapping[BindingCondition, BindingFinding]

_LEAST_PATIENCE_SECONDS: Final = 30.0
_MOST_PATIENCE_SECONDS: Final = 90.0

INTERVALS_WAITED: Final = 4
"""The number of intervals without a plan after which bindings are decided on without it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The plan's result for one binding."""

    replicas: Mapping[Key, int] = field(default_factory=dict)
    """Replicas by the targets' names as variants."""

    message: str = ""
    """Why it is less than requested, or what was planned."""

    is_short: bool = False
    resolved: Findings = field(default_factory=dict)
    """The source of its targets' priority, and whether their costs count."""

    why_not: str = ""
    """Why the plan has no result; empty if it has one."""

    has_nothing_to_place: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestBatch:
    """Requests as one plan received them."""

    number: int
    demands: tuple[BindingDemand, ...]


class Exchange:
    """Requests and grants within one leader; both sides run in one event loop."""

    def __init__(self, *, interval_seconds: float = DEFAULT_SIZING.interval_seconds) -> None:
        self.patience_seconds = min(
            max(2 * interval_seconds, _LEAST_PATIENCE_SECONDS), _MOST_PATIENCE_SECONDS
        )
        """How long to wait for a plan, in seconds."""

        self._demands: tuple[BindingDemand, ...] = ()
        self._requested = asyncio.Event()
        self._number = 0
        self._grants: asyncio.Future[Mapping[Key, Grant]] | None = None

    async def request_grants(self, demands: Sequence[BindingDemand]) -> Mapping[Key, Grant] | None:
        """Replace the bindings' requests; return the grants, or None if no plan arrives in time."""
        self._demands, self._number = tuple(demands), self._number + 1
        if not demands:
            return {}
        self._grants = asyncio.get_running_loop().create_future()
        self._requested.set()
        try:
            async with asyncio.timeout(self.patience_seconds):
                return await self._grants
        except TimeoutError:
            return None

    async def wait_for_request(self, *, within_seconds: float) -> None:
        """Wait until a plan is requested, or for at most `within_seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._requested.wait()

    def take(self) -> RequestBatch:
        """Return the requests that the next plan must include."""
        self._requested.clear()
        return RequestBatch(number=self._number, demands=self._demands)

    def grant(self, number: int, grants: Mapping[Key, Grant]) -> None:
        """Grant the requests of a number; the grants are dropped if newer requests exist."""
        if self._grants is not None and number == self._number and not self._grants.done():
            self._grants.set_result(grants)


def grants_of(demands: Iterable[BindingDemand], gathered: GatherResult, plan: Plan) -> Mapping[Key, Grant]:
    """Return the grants for each binding, from a plan of what was gathered."""
    variants = {variant.key: variant for variant in gathered.snapshot.variants}
    decisions = {item.key: item for item in plan.decisions}

    def grant(demand: BindingDemand) -> Grant:
        if why := why_not_planned(demand, variants):
            return Grant(why_not=why)
        if holds_nothing(demand, variants):
            return Grant(why_not="its pods ask for no accelerators", has_nothing_to_place=True)
        planned = [decisions[key] for key in demand.variants]
        short = [item for item in planned if item.reason is Reason.SHORTAGE]
        return Grant(
            replicas={item.key: item.replicas for item in planned},
            message="; ".join(item.message for item in short or planned),
            is_short=bool(short),
            resolved=dict(_resolution_findings(demand, gathered)),
        )

    return {demand.key: grant(demand) for demand in demands}


def limit_to_grant(
    case: BindingCase,
    decision: SharedDecision,
    demand: BindingDemand,
    grant: Grant | None,
    *,
    history: History,
    now_seconds: float,
) -> tuple[SharedDecision, Findings]:
    """Return a decision limited to what the plan grants, and the findings about it.

    Without a plan, the last published replicas stay. `history` is the one before the decision.
    """
    if grant is not None and grant.why_not:
        reason = BindingReason.NOTHING_TO_PLACE if grant.has_nothing_to_place else BindingReason.NOT_PLANNED
        text = f"decided without the plan: {grant.why_not}"
        return decision, {BindingCondition.PLACED: (grant.has_nothing_to_place, reason, text)}
    if grant is None:
        text = "no plan arrived in time; until the next plan, the published decision stays"
        finding = (False, BindingReason.AWAITING_PLAN, text)
        granted = _published_replicas(case)
    else:
        reason = BindingReason.TOO_LITTLE_ROOM if grant.is_short else BindingReason.ALL_PLACED
        finding = (not grant.is_short, reason, grant.message)
        granted = [grant.replicas[key] for key in demand.variants]
    placed = granted_decision(
        decision, demand.binding, granted, history=history, now_seconds=now_seconds, detail=finding[2]
    )
    return placed, {**(grant.resolved if grant else {}), BindingCondition.PLACED: finding}


def _published_replicas(case: BindingCase) -> list[int]:
    """Return the replicas of each target in the status, or the current replicas if there are none."""
    published = {
        (item.get("kind"), item.get("name")): item.get("replicas")
        for item in (case.value.get("status") or {}).get("targets") or []
    }
    replicas = []
    for state in case.targets:
        count = published.get((state.bound.target.kind, state.bound.target.name))
        replicas.append(count if isinstance(count, int) else state.current_replicas)
    return replicas


def _resolution_findings(
    demand: BindingDemand, gathered: GatherResult
) -> Iterator[tuple[BindingCondition, BindingFinding]]:
    """Yield the findings that VariantAutoscalings have, too, per target where they differ."""
    items = [gathered.observed[key] for key in demand.variants]
    findings = [item.service_class for item in items]
    # All have the same service class. Without a class, an InferenceObjective may apply to some of them.
    holds, reason, text = next(
        (finding for finding in findings if finding[1] is ConditionReason.OBJECTIVE_FOUND), findings[0]
    )
    if len(set(findings)) > 1:
        names = (bound.target.name for bound in demand.binding.targets)
        text = "; ".join(f"{name}: {finding[2]}" for name, finding in zip(names, findings, strict=True))
    yield BindingCondition.SERVICE_CLASS_RESOLVED, (holds, BindingReason(str(reason)), text)
    if unpriced := dict.fromkeys(item.unpriced for item in items if item.unpriced):
        yield BindingCondition.COST_RESOLVED, (False, BindingReason.COST_NOT_ALLOWED, "; ".join(unpriced))
        return
    in_order = sorted(items, key=lambda item: item.claim.key)
    if unlisted := dict.fromkeys(item.unlisted for item in in_order if item.unlisted):
        yield BindingCondition.COST_RESOLVED, (False, BindingReason.PRICE_INVALID, "; ".join(unlisted))


def without_bound(plan: Plan, gathered: GatherResult) -> Plan:
    """Return the plan without the decisions for bindings' targets, which have a separate status."""
    own = (item for item in plan.decisions if not gathered.observed[item.key].claim.is_bound)
    return replace(plan, decisions=tuple(own))
