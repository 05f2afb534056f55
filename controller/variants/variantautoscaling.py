"""The reconciler of all variants: gather, plan and act, once per interval.

One decision covers every model, so a cycle reconciles the whole set instead of single objects. It is
idempotent: it reads the current state, and writes only statuses that changed in meaning or became old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.bindings.joint import Exchange, grants_of, without_bound
from controller.engines.endpoints import EndpointSource, QuerySource
from controller.evictions.evicting import Evictor
from controller.evictions.rounds import NO_EVICTIONS, EvictionRecord, EvictionRules
from controller.observe.activity import WatchedModel, watched_models
from controller.observe.binding_claims import BindingDemand, claims_of_demands
from controller.observe.claim import Claimant, Claims, Exclusion, faulty
from controller.observe.conditions import shorten
from controller.observe.decision_following import (
    ActingFinding,
    ExternalMetrics,
    ReplicaWatch,
    unknown_metrics,
)
from controller.observe.gather import NO_TERMS, GatherResult, PlanningTerms, World, claims_in, gather
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.policies import Policies
from controller.observe.replicas import lateness
from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot
from controller.sizing.records import DEFAULT_SIZING, SizingSettings
from controller.sizing.sizing import NOTHING_TOLD, SizingResult
from controller.variants.activity import ActivityWatch
from controller.variants.advisory import NOWHERE, Advice, Scope, acted_on, advice, join_plans, why_advisory
from controller.variants.annotated import DecisionAnnotator, due_annotations
from controller.variants.announcing import Announcer
from controller.variants.placement_following import PlacementFollower, sentences
from controller.variants.pod_deletion_costs import PodMarker, due_marks
from controller.variants.privileges import Privileges, questions
from controller.variants.publishing import Publisher, Pulse, expected_errors
from controller.variants.settings_keeping import SettingsKeeper
from controller.variants.situations import situations
from controller.variants.status import StatusInputs, planned_status, reasons_not_ready, unplanned_status
from controller.variants.telemetry import CycleResult
from controller.variants.watching import ClockWatch, EngineSource, EngineWatch, silence_of

_log = EventLogger(__name__)


class Planner(Protocol):
    """Makes plans, in another process."""

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot; never raises for hard input."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """Dependencies of a cycle, which include everything with side effects."""

    cluster: Cluster
    events: EventRecorder
    source: EngineSource
    planner: Planner
    world: Callable[[], World]
    policies: Callable[[], Policies]
    now: Callable[[], datetime]
    """The wall clock, for published times."""

    objectives: Callable[[], Objectives] = lambda: NO_OBJECTIVES
    steady: Callable[[], float] | None = None
    """Seconds for durations, as of `clock.SteadyClock`, which `source` must also use for its readings; None
    to use the wall clock, if it is never adjusted."""

    eviction_record: EvictionRecord | None = None
    """Stores eviction times for the next leader; None if there is none."""

    pulse: Pulse = field(default_factory=Pulse)
    """Notified of every completed cycle."""

    exchange: Exchange = field(default_factory=Exchange)
    """Through which bindings request a place in the plan."""

    external_metrics: Callable[[], ExternalMetrics] = unknown_metrics
    """Returns the state of the external metrics API."""

    endpoints: EndpointSource | None = None
    """Reads what is in front of models without replicas; None if nothing does."""

    queries: QuerySource | None = None
    """Evaluates expressions of Prometheus; None without Prometheus."""

    privileges: Privileges | None = None
    """Permission checks on the writers of objects, for clusters with tenants; None for no checks."""

    settings: SettingsKeeper | None = None
    """Stores the last valid settings for the next leader; None if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleSettings:
    """User settings of a cycle."""

    scale_to_zero: bool
    terms: PlanningTerms = NO_TERMS
    advisory: Scope = NOWHERE
    evictions: EvictionRules = NO_EVICTIONS
    sizing: SizingSettings = DEFAULT_SIZING
    annotates_decisions: bool = True
    """Whether annotated autoscalers get an annotation with the decision."""


class VariantAutoscalingReconciler:
    """Runs cycles; between them it keeps the engines' metrics and the placements of the last plan."""

    def __init__(self, tools: Tools, settings: CycleSettings) -> None:
        self._tools = tools
        self._settings = settings
        self._steady = tools.steady or (lambda: tools.now().timestamp())
        self._clocks = ClockWatch()
        self._watch = EngineWatch(tools.source, settings.sizing, seconds=self._steady)
        self._activity = ActivityWatch(tools.endpoints, tools.queries, settings.sizing)
        self._publisher = Publisher(
            tools.cluster, Announcer(tools.events), interval_seconds=settings.sizing.interval_seconds
        )
        self._replica_watch = ReplicaWatch()
        self._problems: tuple[str, ...] = ()
        self._faults: Mapping[Key, Exclusion] = {}
        self._follower = PlacementFollower(tools.cluster, tools.events)
        self._marker = PodMarker(tools.cluster, now=tools.now)
        self._annotator = DecisionAnnotator(tools.cluster)
        self._evictor = Evictor(
            tools.cluster, tools.events, settings.evictions, now=tools.now, record=tools.eviction_record
        )

    async def sample(self) -> bool:
        """Collect the engines' metrics before the first cycle; tell whether any engine responded.

        Rates need two samples. A decision without rates would replace the published number by that of the
        running replicas.
        """
        world = self._tools.world()
        await self._watch.observe(world.pods, await asyncio.to_thread(claims_in, world))
        return self._watch.has_samples

    async def cycle(self) -> CycleResult:
        """Observe, decide and publish once."""
        tools = self._tools
        world, policies, objectives = tools.world(), await self._policies(), tools.objectives()
        self._clocks.look(wall_seconds=tools.now().timestamp(), steady_seconds=self._steady())
        own = await asyncio.to_thread(claims_in, world)
        failures = await self._watch.observe(world.pods, own)
        await self._activity.observe(
            await asyncio.to_thread(self._watched_models, world, own), now_seconds=self._steady()
        )
        requests = tools.exchange.take()
        claims = own | claims_of_demands(requests.demands)
        policies = await self._with_grants(policies, claims)
        gathered = await self._gather(world, claims, policies, objectives, requests.demands)
        wrong = map(str, policies.problems)
        self._tell_problems((*wrong, *policies.missing.values(), *gathered.problems))
        sized = await asyncio.to_thread(self._watch.size, gathered)
        gathered = replace(gathered, snapshot=sized.snapshot)
        plan, advices = await self._plan(gathered)
        _tell_omissions(plan)
        misplaced = sentences(self._follower.compare(own.claimants, gathered.snapshot))
        plan = self._evictor.with_messages(plan).with_messages(misplaced)
        await self._follower.follow(world, gathered, plan, acted_on=lambda key: key not in advices)
        may_steer = self._settings.terms.steers_removal
        marks = due_marks(gathered, plan, steered=lambda key: may_steer and key not in advices)
        await self._marker.write(marks)
        tools.exchange.grant(requests.number, grants_of(requests.demands, gathered, plan))
        whole, plan = plan, without_bound(plan, gathered)
        seen, external = situations(gathered, plan, advices.keys()), tools.external_metrics()
        acting = self._replica_watch.findings(seen, external, now_seconds=self._steady())
        published = tools.now()
        build = partial(self._statuses, sized=sized, failures=failures, acting=acting, advices=advices)
        statuses, faults = await asyncio.to_thread(build, gathered, plan)
        self._tell_faults({**gathered.unplanned, **faults})
        sound = replace(plan, decisions=tuple(item for item in plan.decisions if item.key not in faults))
        done = await self._publisher.publish(own.claimants, statuses, sound, records=world.records)
        tools.pulse.beat(own.claimants, statuses, done, time=published)
        if self._settings.annotates_decisions:
            await self._annotator.write(due_annotations(own.claimants, statuses), now=published)
        # Nothing is evicted for an unpublished decision, but nodes are reopened and rounds end in any case.
        idle = {**advices, **done.unwritten, **faults}
        evictions = await self._evictor.act(world, gathered, whole, advised=idle)
        return CycleResult(
            plan=plan,
            gathered=gathered,
            written=len(done.written),
            scrape_failures=len(failures),
            responding=self._watch.responding,
            silent_models=self._watch.silent,
            advices={key: item for key, item in advices.items() if not gathered.observed[key].claim.is_bound},
            sized=sized.variants,
            evictions=evictions,
            not_ready=reasons_not_ready(statuses),
            acting=acting,
            divergence=self._follower.divergence,
            unwritten=expected_errors(done.unwritten),
            settings=policies.problems,
        )

    async def _policies(self) -> Policies:
        """Return the settings in force; store and announce what has changed about them."""
        policies, keeper = self._tools.policies(), self._tools.settings
        if keeper is None:
            return policies
        unkept = await keeper.keep()
        policies = replace(policies, problems=(*policies.problems, *([unkept] if unkept else [])))
        keeper.announce(policies.problems)
        return policies

    async def _with_grants(self, policies: Policies, claims: Claims) -> Policies:
        """Return the settings with what the writers of objects may use."""
        if self._tools.privileges is None:
            return policies
        used = await asyncio.to_thread(questions, claims.readable, policies)
        return replace(policies, grants=await self._tools.privileges.grants(used))

    async def _gather(
        self,
        world: World,
        claims: Claims,
        policies: Policies,
        objectives: Objectives,
        demands: Sequence[BindingDemand],
    ) -> GatherResult:
        """Gather in a thread: it takes seconds for thousands of variants, and the lease must be renewed."""
        return await asyncio.to_thread(
            gather,
            world,
            claims,
            policies=policies,
            report_age=self._watch.report_age(),
            now_seconds=self._steady(),
            may_scale_to_zero=self._settings.scale_to_zero,
            idleness=self._activity.idleness(self._watch.idleness),
            terms=replace(self._settings.terms, unsteered=self._marker.forbidden),
            demands=demands,
            objectives=objectives,
        )

    def _watched_models(self, world: World, claims: Claims) -> Mapping[Key, WatchedModel]:
        return watched_models(
            claims.readable,
            world,
            may_scale_to_zero=self._settings.scale_to_zero,
            has_prometheus=self._tools.queries is not None,
        )

    async def _plan(self, gathered: GatherResult) -> tuple[Plan, Mapping[Key, Advice]]:
        """Return the plan with its messages, and the advice for variants whose decisions are not applied."""
        tools, snapshot, scope = self._tools, gathered.snapshot, self._settings.advisory
        variants = {variant.key: variant for variant in snapshot.variants}
        reasons = {
            key: why_advisory(key[0], item.claim.orders, scope) for key, item in gathered.observed.items()
        }
        why_advised = {key: why for key, why in reasons.items() if why}
        is_mixed = 0 < len(why_advised) < len(variants)
        plan = await tools.planner.solve(acted_on(snapshot, why_advised.keys()) if is_mixed else snapshot)
        if is_mixed:
            plan = join_plans(plan, await tools.planner.solve(snapshot), why_advised.keys())
        decisions = {item.key: item for item in plan.decisions}
        advices = {
            key: advice(variants[key], decisions[key], why_advised[key])
            for key in why_advised
            if key in decisions
        }
        return plan.with_messages({key: item.message for key, item in advices.items()}), advices

    def _statuses(
        self,
        gathered: GatherResult,
        plan: Plan,
        *,
        sized: SizingResult,
        failures: Mapping[Key, str],
        acting: Mapping[Key, ActingFinding],
        advices: Mapping[Key, Advice],
    ) -> tuple[Mapping[Key, Json], Mapping[Key, Exclusion]]:
        """Return the statuses, and why those of some objects could not be computed."""
        now, variants = self._tools.now(), {variant.key: variant for variant in sized.snapshot.variants}
        decisions = {item.key: item for item in plan.decisions}
        misplaced = sentences(self._follower.divergence.waiting)

        def status_without_plan(claimant: Claimant, why: Exclusion) -> Json:
            return unplanned_status(claimant.value, why, now=now, published=claimant.status)

        def status_of(claimant: Claimant) -> Json | None:
            key = claimant.key
            if key in gathered.unplanned:
                return status_without_plan(claimant, gathered.unplanned[key])
            if key not in decisions:
                return None
            variant, observed = variants[key], gathered.observed[key]
            inputs = StatusInputs(
                variant=variant,
                decision=decisions[key],
                solver=plan.solver,
                observed=observed,
                silence=silence_of(variant, failures),
                is_misserved=any(
                    (variant.namespace, item.name) in self._watch.misserving for item in variant.replicas
                ),
                unseen=self._activity.problems.get(observed.claim.model, ""),
                lateness=lateness(
                    observed.pods, start_seconds=variant.start_seconds, now_seconds=now.timestamp()
                ),
                acting=acting.get(key),
                advice=advices.get(key),
                misplaced=misplaced.get(key, ""),
                sized=sized.variants.get(key, NOTHING_TOLD),
            )
            return planned_status(claimant.value, inputs, now=now, published=claimant.status)

        statuses: dict[Key, Json | None] = {}
        faults: dict[Key, Exclusion] = {}
        for claimant in gathered.claimants:
            key = claimant.key
            try:
                statuses[key] = status_of(claimant)
            except Exception as error:  # noqa: BLE001 (an error of one object must not affect others)
                faults[key] = faulty(error)
                statuses[key] = status_without_plan(claimant, faults[key])
        return {key: status for key, status in statuses.items() if status is not None}, faults

    def _tell_problems(self, problems: tuple[str, ...]) -> None:
        known = frozenset(self._problems)
        for problem in problems:
            if problem not in known:
                _log.warning("ignored in planning", problem=problem)
        self._problems = problems

    def _tell_faults(self, unplanned: Mapping[Key, Exclusion]) -> None:
        """Log the errors that no check foresaw, each with its traceback, once until it changes."""
        faults = {key: item for key, item in unplanned.items() if item.fault}
        for key, item in faults.items():
            if self._faults.get(key) != item:
                _log.error("not planned", namespace=key[0], name=key[1], exc_info=item.fault)
        self._faults = faults


def _tell_omissions(plan: Plan) -> None:
    if plan.solver.message:
        _log.warning("no plan", why=shorten(plan.solver.message))
    for omission in plan.omissions:
        _log.warning("left out", why=shorten(omission))
