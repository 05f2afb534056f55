"""The reconciler of all AutoscalingPolicyBindings: scrape their pods, decide and publish, once per interval.

The decision is published in the status, which the external metrics API reads. Where the controller scales
directly, `scaling` does so afterwards. A cycle is idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.heartbeat import bound_served_time
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS
from apiserver.cluster.status_writer import apply_status
from apiserver.kinds.identity import Key, key_of
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.bindings.joint import INTERVALS_WAITED, Exchange, Grant, limit_to_grant
from controller.bindings.memory import BindingMemory, questions_of
from controller.bindings.scaling import DirectScaler, scaling_finding
from controller.bindings.status import (
    WRITES_PER_SECOND,
    BindingCycleResult,
    BindingResult,
    binding_news,
    binding_status,
    unwritten_seconds,
)
from controller.engines.endpoints import (
    EndpointQuery,
    EndpointSource,
    Exposures,
    QuerySource,
    activity_questions,
)
from controller.observe.binding_claims import BindingDemand
from controller.observe.binding_conditions import BindingReason, grace_seconds
from controller.observe.binding_targets import BindingCase, BoundReader, BoundWorld
from controller.observe.decision_following import ExternalMetrics, ReplicaWatch, unknown_metrics
from controller.policies.history import History
from controller.policies.sharing import decide_binding
from controller.sizing.records import DEFAULT_SIZING, SizingSettings
from controller.variants.advisory import NOWHERE, Scope, why_advisory
from controller.variants.publishing import FIELD_MANAGER, Pulse, expected_errors, in_turn
from controller.variants.situations import binding_situations, with_acting
from controller.variants.watching import SilenceLog, silent_objects

_WRITERS: Final = 16

_log = EventLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingTools:
    """Dependencies of a cycle."""

    cluster: Cluster
    events: EventRecorder
    source: EndpointSource
    world: Callable[[], BoundWorld]
    now: Callable[[], datetime]
    """The wall clock, for histories: the next leader has a different monotonic clock."""

    steady: Callable[[], float]
    """Seconds for durations, which `source` must also use for its readings."""

    queries: QuerySource | None = None
    """Evaluates expressions of Prometheus; None without Prometheus."""

    pulse: Pulse = field(default_factory=Pulse)
    exchange: Exchange = field(default_factory=Exchange)
    """Through which bindings request a place in the plan."""
    external_metrics: Callable[[], ExternalMetrics] = unknown_metrics
    """Returns the state of the external metrics API."""

    scaler: DirectScaler | None = None
    """Writes scales; None if direct scaling is never used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingSettings:
    """User settings of a cycle."""

    grace_seconds: float = 0.0
    """Time in seconds without requests before the last replica is removed."""

    advisory: Scope = NOWHERE
    joint: Scope = NOWHERE
    """Where bindings are planned together with variants."""

    direct: Scope = NOWHERE
    """Where the controller scales directly."""

    sizing: SizingSettings = DEFAULT_SIZING


@dataclass(frozen=True, kw_only=True, slots=True)
class _WriteResult:
    """Results of the status writes of one cycle."""

    results: Sequence[BindingResult]
    newest: datetime | None
    """When the most recent decision in effect was written."""

    written: int
    failed: Mapping[Key, BaseException]
    """Errors of the statuses that were due but could not be written."""

    standing: Sequence[BindingResult]
    """Results whose status is written or needed no write."""


class AutoscalingPolicyBindingReconciler:
    """Runs cycles; between them it keeps the pods' counters and the histories."""

    def __init__(self, tools: BindingTools, settings: BindingSettings) -> None:
        self._tools = tools
        self._settings = settings
        self._reader = BoundReader(settings.direct.includes)
        self._memory = BindingMemory()
        self._silence = SilenceLog("AutoscalingPolicyBinding")
        self._alone, self._jointly = ReplicaWatch(), ReplicaWatch()
        self._unplanned_since: float | None = None
        self._unwritten_seconds = 0.0
        self._most = max(1, round(WRITES_PER_SECOND * settings.sizing.interval_seconds))

    async def cycle(self) -> BindingCycleResult:
        """Scrape, decide, publish and scale once.

        A decision is applied only if its status is written, because the next leader continues from there.
        """
        tools = self._tools
        world = tools.world()
        cases = await asyncio.to_thread(self._reader.cases, world)
        queries = [
            (case, item)
            for case in cases
            if case.is_decidable and not case.stands_back
            for item in (
                *(item for state in case.targets for item in questions_of(case, state)),
                *activity_questions(case.binding.activity if case.binding else None, case.before),
            )
        ]
        questions = [item for _, item in queries]
        exposures = await tools.source.expose(questions) if queries else Exposures()
        silent = silent_objects([(case.key, item.endpoint) for case, item in queries], exposures.failures)
        self._silence.update(silent)
        sources = [case.binding.activity for case in cases if case.binding]
        await self._memory.endpoints.ask(sources, tools.queries, now_seconds=tools.steady())
        decided = await asyncio.to_thread(self._decide, cases, questions, exposures)
        # Bindings that are not planned jointly do not wait for the plan.
        external = tools.external_metrics()
        alone = await self._publish(
            self._check_following([item for item in decided if item.demand is None], self._alone, external)
        )
        planned = await self._plan_jointly([item for item in decided if item.demand is not None])
        placed = await self._publish(self._check_following(planned, self._jointly, external))
        results, failed = (*alone.results, *placed.results), {**alone.failed, **placed.failed}
        self._memory.remember((item.case.value, item.decision.history) for item in results if item.decision)
        newest = max(filter(None, (alone.newest, placed.newest)), default=None)
        tools.pulse.record_bindings(newest=newest, unconfirmed=frozenset(failed))
        scaled = await tools.scaler.act([*alone.standing, *placed.standing]) if tools.scaler else {}
        return BindingCycleResult(
            results=results,
            written=alone.written + placed.written,
            scrape_failures=len(exposures.failures),
            responding=len(exposures.looks),
            silent=silent,
            scaled=scaled,
            unwritten=expected_errors(failed),
        )

    def _decide(
        self, cases: Sequence[BindingCase], queries: Sequence[EndpointQuery], exposures: Exposures
    ) -> list[BindingResult]:
        self._memory.endpoints.take(queries, exposures)
        interval_seconds = self._settings.sizing.interval_seconds
        self._unwritten_seconds = unwritten_seconds(len(cases), interval_seconds=interval_seconds)
        now_seconds, steady_seconds = self._tools.now().timestamp(), self._tools.steady()
        failed = {
            (item.namespace, item.pod): f"{item.pod}: {why}" for item, why in exposures.failures.items()
        }
        return [
            self._with_scaling(self._decide_one(case, failed, now_seconds, steady_seconds)) for case in cases
        ]

    async def _plan_jointly(self, results: Sequence[BindingResult]) -> list[BindingResult]:
        """Return the results of jointly planned bindings, with the plan's grants."""
        exchange, steady_seconds = self._tools.exchange, self._tools.steady()
        grants = await exchange.request_grants([item.demand for item in results if item.demand is not None])
        if grants is not None:
            self._unplanned_since = None
        elif self._unplanned_since is None:
            self._unplanned_since = steady_seconds
        since = self._unplanned_since
        longest_seconds = INTERVALS_WAITED * self._settings.sizing.interval_seconds
        if since is not None and steady_seconds - since >= longest_seconds:
            why = f"no plan was made for {steady_seconds - since:.0f} s"
            grants = {item.case.key: Grant(why_not=why) for item in results}
        now_seconds = self._tools.now().timestamp()
        return await asyncio.to_thread(
            lambda: [self._grant(item, (grants or {}).get(item.case.key), now_seconds) for item in results]
        )

    def _grant(self, result: BindingResult, grant: Grant | None, now_seconds: float) -> BindingResult:
        """Return the result with the plan's grant; an error affects only this binding."""
        if result.demand is None or result.decision is None:
            return result
        try:
            decision, placement = limit_to_grant(
                result.case,
                result.decision,
                result.demand,
                grant,
                history=self._history(result.case, now_seconds),
                now_seconds=now_seconds,
            )
        except Exception as error:  # noqa: BLE001 (an error of one binding must not affect others)
            return _faulty(result.case, error)
        return replace(result, decision=decision, placement=placement)

    def _check_following(
        self, results: Sequence[BindingResult], watch: ReplicaWatch, external: ExternalMetrics
    ) -> list[BindingResult]:
        """Return the results with whether their decisions are followed."""
        seen, now_seconds = binding_situations(results), self._tools.steady()
        return with_acting(results, watch.findings(seen, external, now_seconds=now_seconds))

    def _decide_one(
        self, case: BindingCase, failed: Mapping[Key, str], now_seconds: float, steady_seconds: float
    ) -> BindingResult:
        """Return the result for a binding; an error affects only this binding."""
        try:
            return self._result(case, failed, now_seconds, steady_seconds)
        except Exception as error:  # noqa: BLE001 (an error of one binding must not affect others)
            return _faulty(case, error)

    def _result(
        self, case: BindingCase, failed: Mapping[Key, str], now_seconds: float, steady_seconds: float
    ) -> BindingResult:
        if case.policy is None or case.binding is None or not case.targets or case.stands_back:
            return BindingResult(case=case)
        history = self._history(case, now_seconds)
        decision = decide_binding(
            case.policy,
            case.binding,
            history,
            self._memory.last_metrics(case, steady_seconds=steady_seconds),
            now_seconds,
            grace_seconds=grace_seconds(case.value, self._settings.grace_seconds),
            settings=self._settings.sizing,
        )
        demand = None
        if self._settings.joint.includes(case.key[0]):
            # What the policy alone would start, so that the plan keeps running replicas despite a closer fit.
            required = case.binding.capacity_of(decision.replicas)
            demand = BindingDemand(value=case.value, binding=case.binding, required=required)
        why = why_advisory(case.key[0], case.orders, self._settings.advisory)
        watched = (*(pod for state in case.targets for pod in state.pods), *case.before)
        pods = [pod["metadata"] for pod in watched]
        causes = (failed.get((pod["namespace"], pod["name"])) for pod in pods)
        return BindingResult(
            case=case,
            decision=decision,
            demand=demand,
            advice=None if why is None else (BindingReason(str(why[0])), why[1]),
            silence=next(filter(None, causes), ""),
        )

    def _history(self, case: BindingCase, now_seconds: float) -> History:
        """Return the history of a binding; another leader decided an interval ago at the latest."""
        seen_seconds = now_seconds - self._settings.sizing.interval_seconds
        return self._memory.history(
            case, seen_seconds=seen_seconds, unwritten_seconds=self._unwritten_seconds
        )

    def _with_scaling(self, result: BindingResult) -> BindingResult:
        scaler = self._tools.scaler
        attempt = scaler.last_attempt(result.case.value) if scaler else None
        return replace(result, scaling=scaling_finding(result, attempt))

    async def _publish(self, results: Sequence[BindingResult]) -> _WriteResult:
        """Write the statuses that are due."""
        now = self._tools.now()
        pairs = await asyncio.to_thread(lambda: [_result_and_status(item, now) for item in results])
        results, statuses = [result for result, _ in pairs], [status for _, status in pairs]
        news = []
        for place, (result, status) in enumerate(zip(results, statuses, strict=True)):
            old = result.case.value.get("status") or {}
            news.append((place, binding_news(old, status, now=now), str(old.get("lastDecisionTime") or "")))
        due = in_turn(news, most=self._most)
        gate = asyncio.Semaphore(_WRITERS)

        async def write(place: int) -> bool:
            value, status = results[place].case.value, statuses[place]
            async with gate:
                stored = await apply_status(
                    self._tools.cluster,
                    AUTOSCALING_POLICY_BINDINGS,
                    value,
                    status,
                    field_manager=FIELD_MANAGER,
                )
            if stored is None:
                _log.info("gone before its status was written", binding="/".join(key_of(value)))
                return False
            self._announce(value, status)
            return True

        answers = await asyncio.gather(*(write(place) for place in due), return_exceptions=True)
        ended = dict(zip(due, answers, strict=True))
        unwritten = {place: item for place, item in ended.items() if isinstance(item, BaseException)}
        newest = None
        for place, result in enumerate(results):
            if ended.get(place, True) is not True:
                continue  # users may have written any time into a status that could not be written
            shown = statuses[place] if place in ended else result.case.value.get("status") or {}
            newest = max(filter(None, (newest, bound_served_time(shown))), default=None)
        return _WriteResult(
            results=results,
            newest=newest,
            written=sum(item is True for item in answers),
            failed={results[place].case.key: error for place, error in unwritten.items()},
            standing=[item for place, item in enumerate(results) if place not in unwritten],
        )

    def _announce(self, value: Json, status: Json) -> None:
        """Record events for a changed number of replicas, and for conditions that fail or recover."""
        old = value.get("status") or {}
        message = status["decision"]["message"]
        desired, was = status.get("desiredReplicas"), old.get("desiredReplicas")
        if desired is not None and desired != was:
            _log.info("decided", binding="/".join(key_of(value)), replicas=desired, was=was, message=message)
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


def _result_and_status(result: BindingResult, now: datetime) -> tuple[BindingResult, Json]:
    """Return a result and its status; an error affects only this binding."""
    try:
        return result, binding_status(result, now=now)
    except Exception as error:  # noqa: BLE001 (an error of one binding must not affect others)
        result = _faulty(result.case, error)
        return result, binding_status(result, now=now)


def _faulty(case: BindingCase, error: Exception) -> BindingResult:
    """Log an unexpected error; return the result that reports it, without a decision."""
    _log.error("binding not decided", binding="/".join(key_of(case.value)), exc_info=error)
    return BindingResult(case=case, fault=f"{type(error).__name__} in the controller")
