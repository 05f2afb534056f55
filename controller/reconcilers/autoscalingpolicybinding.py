"""All AutoscalingPolicyBindings together, once per interval: ask their pods, decide, publish.

The decision stands in the status, where the external metrics API finds it. Where the controller itself is to
scale, `scaling` does it afterwards. It may run twice without harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS
from apiserver.schema.json import Json
from controller.observe.asks import Ask
from controller.observe.binding_conditions import BindingReason, grace_seconds
from controller.observe.bound import BoundReader, BoundWorld, Case
from controller.observe.endpoints import Exposures, Question
from controller.policies.sharing import decide_binding
from controller.reconcilers.advisory import NOWHERE, Scope, advised
from controller.reconcilers.binding_memory import BindingMemory, activity_questions, questions_of
from controller.reconcilers.binding_status import (
    News,
    Verdict,
    binding_news,
    binding_status,
    written_time,
)
from controller.reconcilers.heartbeat import Pulse
from controller.reconcilers.joint import INTERVALS_WAITED, Exchange, Grant, joined
from controller.reconcilers.publishing import FIELD_MANAGER
from controller.reconcilers.scale_orders import scaling_finding
from controller.reconcilers.scaling import DirectScaler, Ending
from controller.sizing.records import DEFAULT_SIZING, SizingSettings

WRITES_PER_SECOND: Final = 1.0
"""Of statuses whose news can wait."""

_WRITERS: Final = 16

_log = structlog.get_logger(__name__)

Key = tuple[str, str]


class EndpointSource(Protocol):
    """Where the metrics of bound pods come from: the pods, or a Prometheus."""

    async def expose(self, questions: Sequence[Question]) -> Exposures:
        """Return what is exposed at some endpoints."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingTools:
    """What a cycle works with."""

    cluster: Cluster
    events: EventRecorder
    source: EndpointSource
    world: Callable[[], BoundWorld]
    now: Callable[[], datetime]
    """The wall clock, by which histories are kept: the next leader has another steady one."""

    steady: Callable[[], float]
    """Seconds for durations, by which `source` dates what it says."""

    pulse: Pulse = field(default_factory=Pulse)
    exchange: Exchange = field(default_factory=Exchange)
    """Where bindings ask to be planned with everything else."""
    scaler: DirectScaler | None = None
    """What writes scales; None where that is never asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingSettings:
    """What a person may choose of it."""

    grace_seconds: float = 0.0
    """How long nothing must be asked for before the last replica goes."""

    advisory: Scope = NOWHERE
    joint: Scope = NOWHERE
    """Where bindings are planned with everything else."""

    direct: Scope = NOWHERE
    """Where the controller itself scales."""

    sizing: SizingSettings = DEFAULT_SIZING


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingOutcome:
    """What one cycle did."""

    verdicts: tuple[Verdict, ...] = ()
    written: int = 0
    scrape_failures: int = 0
    scaled: Mapping[Ending, int] = field(default_factory=dict)
    """How many writes of scales ended how, those of cycles that raised before it included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Published:
    """What came of the statuses of one cycle."""

    verdicts: Sequence[Verdict]
    newest: datetime | None
    """When the newest decision was written that stands."""

    unconfirmed: frozenset[Key]
    written: int
    failed: Sequence[BaseException]
    standing: Sequence[Verdict]
    """Those of which the status is written, or needed no writing."""


class AutoscalingPolicyBindingReconciler:
    """Runs cycles; between them it remembers what pods counted, and histories."""

    def __init__(self, tools: BindingTools, settings: BindingSettings) -> None:
        self._tools = tools
        self._settings = settings
        self._reader = BoundReader(settings.direct.includes)
        self._memory = BindingMemory()
        self._scaled: Counter[Ending] = Counter()
        self._unplanned_since: float | None = None
        self._most = max(1, round(WRITES_PER_SECOND * settings.sizing.interval_seconds))

    async def cycle(self) -> BindingOutcome:
        """Ask, decide, publish and scale once. Raises the ClusterError of a status that was not written.

        What is not written down is not done: the next leader must find what this one went by.
        """
        tools = self._tools
        world = tools.world()
        cases = await asyncio.to_thread(self._reader.cases, world)
        asked = [
            item
            for case in cases
            if case.is_decidable and not case.stands_back
            for item in (
                *(item for state in case.targets for item in questions_of(case, state)),
                *activity_questions(case),
            )
        ]
        exposures = await tools.source.expose(asked) if asked else Exposures()
        verdicts = await asyncio.to_thread(self._decided, cases, asked, exposures)
        # Those that the plan has no say in do not wait for it.
        alone = await self._publish([item for item in verdicts if item.ask is None])
        planned = await self._planned([item for item in verdicts if item.ask is not None])
        placed = await self._publish(planned)
        self._remember([*alone.verdicts, *placed.verdicts])
        self._confirm(alone, placed)
        if tools.scaler:
            self._scaled.update(await tools.scaler.act([*alone.standing, *placed.standing]))
        for error in (*alone.failed, *placed.failed):
            raise error
        scaled, self._scaled = self._scaled, Counter()
        return BindingOutcome(
            verdicts=(*alone.verdicts, *placed.verdicts),
            written=alone.written + placed.written,
            scrape_failures=len(exposures.failures),
            scaled=scaled,
        )

    def _decided(
        self, cases: Sequence[Case], asked: Sequence[Question], exposures: Exposures
    ) -> list[Verdict]:
        self._memory.take(asked, exposures)
        now_seconds, steady_seconds = self._tools.now().timestamp(), self._tools.steady()
        failed = {
            (item.namespace, item.pod): f"{item.pod}: {why}" for item, why in exposures.failures.items()
        }
        return [
            self._with_scaling(self._isolated(case, failed, now_seconds, steady_seconds)) for case in cases
        ]

    async def _planned(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the verdicts of bindings that ask to be planned, as the plan has them."""
        exchange, steady_seconds = self._tools.exchange, self._tools.steady()
        grants = await exchange.granted([item.ask for item in verdicts if item.ask is not None])
        if grants is not None:
            self._unplanned_since = None
        elif self._unplanned_since is None:
            self._unplanned_since = steady_seconds
        since = self._unplanned_since
        longest_seconds = INTERVALS_WAITED * self._settings.sizing.interval_seconds
        if since is not None and steady_seconds - since >= longest_seconds:
            why = f"no plan was made for {steady_seconds - since:.0f} s"
            grants = {item.case.key: Grant(why_not=why) for item in verdicts}
        now_seconds = self._tools.now().timestamp()
        return await asyncio.to_thread(
            lambda: [self._joined(item, (grants or {}).get(item.case.key), now_seconds) for item in verdicts]
        )

    def _joined(self, verdict: Verdict, grant: Grant | None, now_seconds: float) -> Verdict:
        """Return the verdict with what the plan grants; what goes wrong must not stop the others."""
        if verdict.ask is None or verdict.decision is None:
            return verdict
        try:
            decision, placement = joined(
                verdict.case,
                verdict.decision,
                verdict.ask,
                grant,
                history=self._memory.history(verdict.case.value),
                now_seconds=now_seconds,
            )
        except Exception as error:  # noqa: BLE001 (the boundary of a binding)
            return _faulty(verdict.case, error)
        return replace(verdict, decision=decision, placement=placement)

    def _remember(self, verdicts: Sequence[Verdict]) -> None:
        self._memory.remember(
            (item.case.value, item.decision.history) for item in verdicts if item.decision is not None
        )

    def _confirm(self, *published: _Published) -> None:
        """Tell the pulse what is published now."""
        newest = max((item.newest for item in published if item.newest), default=None)
        self._tools.pulse.bound(
            newest=newest, unconfirmed=frozenset().union(*(item.unconfirmed for item in published))
        )

    def _isolated(
        self, case: Case, failed: Mapping[Key, str], now_seconds: float, steady_seconds: float
    ) -> Verdict:
        """Return the verdict on a binding; what goes wrong with one must not stop the others."""
        try:
            return self._verdict(case, failed, now_seconds, steady_seconds)
        except Exception as error:  # noqa: BLE001 (the boundary of a binding)
            return _faulty(case, error)

    def _verdict(
        self, case: Case, failed: Mapping[Key, str], now_seconds: float, steady_seconds: float
    ) -> Verdict:
        if case.policy is None or case.binding is None or not case.targets or case.stands_back:
            return Verdict(case=case)
        history = self._memory.history(case.value)
        decision = decide_binding(
            case.policy,
            case.binding,
            history,
            self._memory.seen(case, steady_seconds=steady_seconds),
            now_seconds,
            grace_seconds=grace_seconds(case.value, self._settings.grace_seconds),
            settings=self._settings.sizing,
        )
        ask = None
        if self._settings.joint.includes(case.key[0]):
            # What the policy alone would start, so that what runs is not exchanged for an exact fit.
            required = case.binding.serving(decision.replicas)
            ask = Ask(value=case.value, binding=case.binding, required=required)
        why = advised(case.value, self._settings.advisory)
        asked = (*(pod for state in case.targets for pod in state.pods), *case.before)
        pods = [pod["metadata"] for pod in asked]
        said = (failed.get((pod["namespace"], pod["name"])) for pod in pods)
        return Verdict(
            case=case,
            decision=decision,
            ask=ask,
            advice=None if why is None else (BindingReason(str(why[0])), why[1]),
            silence=next(filter(None, said), ""),
        )

    def _with_scaling(self, verdict: Verdict) -> Verdict:
        scaler = self._tools.scaler
        tried = scaler.tried(verdict.case.value) if scaler else None
        return replace(verdict, scaling=scaling_finding(verdict, tried))

    async def _publish(self, verdicts: Sequence[Verdict]) -> _Published:
        """Write the statuses that are due."""
        now = self._tools.now()
        said = await asyncio.to_thread(lambda: [_said(item, now) for item in verdicts])
        verdicts, statuses = [verdict for verdict, _ in said], [status for _, status in said]
        due = _due(verdicts, statuses, most=self._most, now=now)
        gate = asyncio.Semaphore(_WRITERS)

        async def write(place: int) -> bool:
            async with gate:
                is_there = await self._write(verdicts[place].case.value, statuses[place])
            if is_there:
                self._announce(verdicts[place], statuses[place])
            return is_there

        results = await asyncio.gather(*(write(place) for place in due), return_exceptions=True)
        ended = dict(zip(due, results, strict=True))
        unwritten = {place: item for place, item in ended.items() if isinstance(item, BaseException)}
        newest = None
        for place, verdict in enumerate(verdicts):
            is_new = ended.get(place) is True
            shown = statuses[place] if is_new else verdict.case.value.get("status") or {}
            if shown.get("desiredReplicas") is not None:
                newest = max(filter(None, (newest, written_time(shown))), default=None)
        return _Published(
            verdicts=verdicts,
            newest=newest,
            unconfirmed=frozenset(verdicts[place].case.key for place in unwritten),
            written=sum(item is True for item in results),
            failed=list(unwritten.values()),
            standing=[item for place, item in enumerate(verdicts) if place not in unwritten],
        )

    async def _write(self, value: Json, status: Json) -> bool:
        """Write one status; returns whether its object is still there."""
        metadata = value["metadata"]
        body = {
            "apiVersion": AUTOSCALING_POLICY_BINDINGS.api_version,
            "kind": AUTOSCALING_POLICY_BINDINGS.kind,
            # The uid keeps a status from landing on a namesake that was created since.
            "metadata": {name: metadata[name] for name in ("namespace", "name", "uid")},
            "status": status,
        }
        try:
            await self._tools.cluster.apply(
                AUTOSCALING_POLICY_BINDINGS,
                body,
                field_manager=FIELD_MANAGER,
                force=True,
                subresource="status",
            )
        except (NotFound, Conflict):
            _log.info("gone before its status was written", binding="/".join(_key(value)))
            return False
        return True

    def _announce(self, verdict: Verdict, status: Json) -> None:
        """Tell of another number of replicas, and of conditions that failed or hold again."""
        value, old = verdict.case.value, verdict.case.value.get("status") or {}
        message = status["decision"]["message"]
        desired, was = status.get("desiredReplicas"), old.get("desiredReplicas")
        if desired is not None and desired != was:
            _log.info("decided", binding="/".join(_key(value)), replicas=desired, was=was, message=message)
            self._tools.events.record(
                value, type="Normal", reason="Decided", action="Decide", note=message, meaning=str(desired)
            )
        before = {item.get("type"): item.get("status") for item in old.get("conditions") or []}
        for item in status["conditions"]:
            if item["type"] in before and before[item["type"]] == item["status"]:
                continue
            if item["status"] == "False" or item["type"] in before:
                self._tools.events.record(
                    value,
                    type="Normal" if item["status"] == "True" else "Warning",
                    reason=item["reason"],
                    action="Observe",
                    note=item["message"],
                    meaning=item["reason"],
                )


def _said(verdict: Verdict, now: datetime) -> tuple[Verdict, Json]:
    """Return a verdict with the status that says it, isolated as deciding is."""
    try:
        return verdict, binding_status(verdict, now=now)
    except Exception as error:  # noqa: BLE001 (the boundary of a binding)
        verdict = _faulty(verdict.case, error)
        return verdict, binding_status(verdict, now=now)


def _faulty(case: Case, error: Exception) -> Verdict:
    """Log a fault of ours, and return the verdict that tells of it: nothing is published."""
    _log.error("binding not decided", binding="/".join(_key(case.value)), exc_info=error)
    return Verdict(case=case, fault=f"{type(error).__name__} in the controller")


def _due(verdicts: Sequence[Verdict], statuses: Sequence[Json], *, most: int, now: datetime) -> list[int]:
    """Return which statuses are written now: all with urgent news, then those written longest ago."""
    urgent, ordinary = [], []
    for place, (verdict, status) in enumerate(zip(verdicts, statuses, strict=True)):
        old = verdict.case.value.get("status") or {}
        found = binding_news(old, status, now=now)
        if found is News.URGENT:
            urgent.append(place)
        elif found is News.ORDINARY:
            ordinary.append((str(old.get("lastDecisionTime") or ""), place))
    ordinary.sort()
    return [*urgent, *(place for _, place in ordinary[: max(0, most - len(urgent))])]


def _key(value: Json) -> Key:
    return value["metadata"]["namespace"], value["metadata"]["name"]
