"""Simulate a scenario with a policy: by name, such as `stowplan` or `concurrency:40@h100`, or from a file."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from controller.planning.inputs import Settings
from controller.simulation.autoscaler import SimulatedAutoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.horizontal import HorizontalPolicy, scalers_of
from controller.simulation.lower_bound import ATTAINMENT, lower_bound
from controller.simulation.manifests import Manifests, manifests_of
from controller.simulation.outcome import ModelPoint, Point, PolicyOutcome, VariantPoint, quantile, score
from controller.simulation.policies import (
    BoundPolicy,
    ConstantPolicy,
    LoadPolicy,
    Policy,
    PolicyFile,
    chosen_variants,
    scaled_variants,
    unbound_problem,
)
from controller.simulation.reconciler import ReconciledPolicy
from controller.simulation.scenario import LAST_SECONDS, Scenario
from controller.simulation.workload import Request
from controller.sizing.records import DEFAULT_SIZING
from controller.variants.solver_worker import without_collection
from controller.variants.variantautoscaling import CycleSettings

PLAIN = ("stowplan", "hpa", "lower-bound")
NUMBERED = ("concurrency", "queue", "constant")
_FORMS = (
    f"{', '.join(PLAIN)}, lower-bound:N, one of {', '.join(NUMBERED)} with :N or :N@VARIANT, such as"
    " concurrency:40, or a file FILE.yaml"
)
_EXPORT_ONLY: Final = "replays the HorizontalPodAutoscalers and ScaledObjects of an export: use -f FILE"
_NUMBER = re.compile(r"(?P<number>[0-9]{1,6}(\.[0-9]{1,3})?)(@(?P<variants>.+))?\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyName:
    """The parts of a policy's name; `number`, `variants` and `file` are empty where it has none."""

    text: str
    kind: str
    number: float = 0.0
    variants: tuple[str, ...] = ()
    file: PolicyFile | None = None
    """The content of the file, for a policy in a file."""


def policy_name(text: str) -> PolicyName:
    """Return the parts of a name. Raises ValueError with the valid forms."""
    if text in PLAIN:
        return PolicyName(text=text, kind=text)
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("lower-bound", *NUMBERED):
        raise ValueError(f"there is no policy {text!r}: must be {_FORMS}")
    parts = _NUMBER.match(rest)
    number, named = (float(parts["number"]), parts["variants"] or "") if parts else (-1.0, "")
    if kind == "lower-bound":
        if not 0 < number <= 100 or named:  # noqa: PLR2004 (percent)
            raise ValueError(
                f"{text!r}: must be lower-bound:N, where N is a percentage of requests above 0 and up to 100"
            )
    elif kind == "constant" and not (number >= 0 and number.is_integer()):
        allowed = "a whole number from 0 to 999999"
        raise ValueError(f"{text!r}: must be {kind}:N or {kind}:N@VARIANT, where N is {allowed}")
    elif kind != "constant" and number <= 0:
        allowed = "from 0.001 to 999999.999"
        raise ValueError(f"{text!r}: must be {kind}:N or {kind}:N@VARIANT, where N is {allowed}")
    variants = tuple(item for item in named.split(",") if item)
    return PolicyName(text=text, kind=kind, number=number, variants=variants)


def policy_problem(name: PolicyName, scenario: Scenario, manifests: Manifests | None = None) -> str:
    """Return why a scenario cannot be simulated with a policy; empty if it can.

    `manifests` are those of an export.
    """
    problem, variants = "", {variant.name: variant for variant in scenario.variants}
    unknown = [item for item in name.variants if item not in variants]
    parts = Counter(
        (variants[item].model_id, variants[item].profile.role) for item in name.variants if item in variants
    )
    several = [model_id for (model_id, _), count in parts.items() if count > 1]
    if name.file is not None:
        problem = unbound_problem(name.file, scenario)
    elif unknown:
        problem = f"there is no variant {unknown[0]!r}; the variants are {', '.join(variants)}"
    elif name.kind == "constant" and several:
        problem = f"must name one variant of model {several[0]!r}, which runs N replicas of it"
    elif name.kind == "hpa":
        problem = scalers_of(manifests)[1] if manifests else _EXPORT_ONLY
    elif name.kind == "lower-bound" and any(variant.profile.role for variant in scenario.variants):
        problem = f"not for engines with a role; use stowplan, hpa, {', '.join(NUMBERED)}"
    return f"policy {name.text}: {problem}" if problem else ""


def simulate(
    scenario: Scenario,
    policy: str,
    *,
    requests: Mapping[str, list[Request]] | None = None,
    cycle_settings: CycleSettings | None = None,
) -> PolicyOutcome:
    """Simulate a scenario with a policy by name, for callers without an event loop.

    Raises ValueError for an unknown policy, or a variant that the scenario does not have.
    """
    name = policy_name(policy)
    if problem := policy_problem(name, scenario):
        raise ValueError(problem)
    with without_collection():
        return asyncio.run(simulate_policy(scenario, name, requests=requests, cycle_settings=cycle_settings))


async def simulate_policy(
    scenario: Scenario,
    name: PolicyName,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
    settings: Settings | None = None,
    cycle_settings: CycleSettings | None = None,
) -> PolicyOutcome:
    """Simulate a scenario with a policy. The controller's logs are suppressed.

    The settings are those of the controller, for `stowplan` and policies in files.
    """
    with silent():
        if name.kind == "lower-bound":
            attainment = name.number / 100 or ATTAINMENT
            return lower_bound(scenario, attainment=attainment, requests=requests, name=name.text)
        if name.kind == "stowplan":
            policy: Policy = ReconciledPolicy(
                scenario, manifests=manifests, settings=settings, cycle_settings=cycle_settings
            )
        elif name.file is not None:
            sizing = cycle_settings.sizing if cycle_settings else DEFAULT_SIZING
            policy = BoundPolicy(scenario, name.file, name=name.text, settings=sizing)
        elif name.kind == "hpa" and manifests is not None:
            policy = HorizontalPolicy(scenario=scenario, scalers=scalers_of(manifests)[0])
        else:
            policy, scenario = _numbered(scenario, name)
        outcome = await play(scenario, policy, manifests=manifests, requests=requests, progress=progress)
        if isinstance(policy, HorizontalPolicy):
            return replace(outcome, note=policy.note)
        return replace(outcome, decided=policy.courses) if isinstance(policy, BoundPolicy) else outcome


def _numbered(scenario: Scenario, name: PolicyName) -> tuple[Policy, Scenario]:
    """Return a policy with a number, and the scenario: constant fleets run in it from the beginning."""
    if name.kind != "constant":
        policy = LoadPolicy(
            scenario=scenario,
            per_replica=name.number,
            scaled=scaled_variants(scenario, name.variants),
            name=name.text,
            counts_running=name.kind == "concurrency",
        )
        return policy, scenario
    scaled = chosen_variants(scenario, name.variants)
    replicas = int(name.number)
    variants = tuple(
        replace(variant, initial_replicas=replicas * (variant.name in scaled))
        for variant in scenario.variants
    )
    fleet = ConstantPolicy(replicas=replicas, scaled=scaled, name=name.text)
    return fleet, replace(scenario, variants=variants)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the controller's logs within the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


async def play(
    scenario: Scenario,
    policy: Policy,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> PolicyOutcome:
    """Simulate a scenario and return its outcome.

    `requests` are those of `scenario.requests()`: pass them to simulate a scenario several times. `progress`
    is called with the completed share.
    """
    arrivals = scenario.requests() if requests is None else requests
    cluster = VirtualCluster(scenario, manifests or manifests_of(scenario), arrivals)
    autoscalers = {variant.name: policy.autoscaler(variant) for variant in scenario.variants}
    recorder, unscored = Recorder(scenario, autoscalers), dict(cluster.replica_seconds)
    published: Mapping[str, float] = {}
    tick, now_seconds, due_seconds = 0, 0.0, 0.0
    while now_seconds < scenario.end_seconds:
        cluster.advance(now_seconds)
        if now_seconds <= scenario.warm_up_seconds:
            unscored = dict(cluster.replica_seconds)
        if now_seconds >= due_seconds:
            passed = int((now_seconds - due_seconds) / policy.interval_seconds)
            due_seconds += (passed + 1) * policy.interval_seconds
            published = await policy.publish(cluster)
        _scale(cluster, autoscalers, published)
        recorder.take(cluster, published)
        if progress:
            progress(now_seconds / scenario.end_seconds)
        tick += 1
        now_seconds = tick * scenario.sync_seconds
    cluster.advance(scenario.end_seconds)
    replica_seconds = {name: cluster.replica_seconds[name] - before for name, before in unscored.items()}
    cluster.fleet.advance(round((scenario.end_seconds + LAST_SECONDS) * 1e6))
    return score(
        scenario,
        policy=policy.name,
        decisions=policy.decisions,
        requests=arrivals,
        finished=cluster.fleet.finished,
        abandoned={model_id: router.abandoned for model_id, router in cluster.fleet.routers.items()},
        points=recorder.points,
        replica_seconds=replica_seconds,
    )


def _scale(
    cluster: VirtualCluster,
    autoscalers: Mapping[str, SimulatedAutoscaler | None],
    published: Mapping[str, float],
) -> None:
    for name, autoscaler in autoscalers.items():
        metric = published.get(name)
        if autoscaler is not None:
            pods = len(cluster.pods_of(name))
            replicas = cluster.replicas[name]
            recommended = autoscaler.sync(cluster.now_seconds, replicas=replicas, pods=pods, metric=metric)
            cluster.scale(name, recommended)
        elif metric is not None:
            cluster.scale(name, round(metric))


class Recorder:
    """Records one point per tick, and how far it has read."""

    def __init__(self, scenario: Scenario, autoscalers: Mapping[str, SimulatedAutoscaler | None]) -> None:
        self.points: list[Point] = []
        self._scenario = scenario
        self._per_replica = {name: item.target_average for name, item in autoscalers.items() if item}
        self._arrived = {model.model_id: 0 for model in scenario.models}
        self._finished = {model.model_id: 0 for model in scenario.models}
        self._last_seconds = 0.0

    def take(self, cluster: VirtualCluster, published: Mapping[str, float]) -> None:
        """Record the state at the time to which the cluster has advanced."""
        elapsed_seconds = cluster.now_seconds - self._last_seconds
        self._last_seconds = cluster.now_seconds
        counts = {name: cluster.counts(name) for name in cluster.variants}
        recommended = {name: metric / self._per_replica.get(name, 1.0) for name, metric in published.items()}
        models, variants = self._scenario.models, cluster.variants
        self.points.append(
            Point(
                seconds=cluster.now_seconds - self._scenario.warm_up_seconds,
                cost_rate=sum(counts[name].held * item.price_per_hour for name, item in variants.items()),
                models=tuple(self._model(cluster, model.model_id, elapsed_seconds) for model in models),
                variants=tuple(
                    VariantPoint(
                        name=name,
                        published=published.get(name),
                        wanted=recommended.get(name),
                        spec=seen.spec,
                        ready=seen.ready,
                        starting=seen.starting,
                    )
                    for name, seen in counts.items()
                ),
            )
        )

    def _model(self, cluster: VirtualCluster, model_id: str, elapsed_seconds: float) -> ModelPoint:
        arrived = cluster.fleet.routers[model_id].arrived
        came, self._arrived[model_id] = arrived - self._arrived[model_id], arrived
        finished = cluster.fleet.finished[model_id]
        done, self._finished[model_id] = finished[self._finished[model_id] :], len(finished)
        gaps = [item.inter_token_latency_seconds for item in done if item.request.output_tokens > 1]
        return ModelPoint(
            model_id=model_id,
            arrivals_per_second=came / elapsed_seconds if elapsed_seconds else 0.0,
            ttft_p90_seconds=quantile(sorted(item.time_to_first_token_seconds for item in done), 0.9),
            itl_p90_seconds=quantile(sorted(gaps), 0.9),
        )
