"""Simulate one scenario with one policy, and record the observable state at each tick."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.closedloop.cluster import VirtualCluster
from controller.closedloop.manifests import manifests_of
from controller.closedloop.outcome import ModelPoint, Point, VariantPoint
from controller.closedloop.scoring import quantile, score
from controller.closedloop.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.manifests import Manifests
    from controller.closedloop.outcome import PolicyOutcome
    from controller.closedloop.policy import Policy
    from controller.closedloop.scenario import Scenario
    from controller.simulation.request import Request


class Recorder:
    """Records one point per tick, and how far it has read."""

    def __init__(self, scenario: Scenario, autoscalers: Mapping[str, Autoscaler | None]) -> None:
        self.points: list[Point] = []
        self._scenario = scenario
        self._per_replica = {name: item.target_average for name, item in autoscalers.items() if item}
        self._arrived = {model.model_id: 0 for model in scenario.models}
        self._read = {model.model_id: 0 for model in scenario.models}
        self._last_seconds = 0.0

    def take(self, cluster: VirtualCluster, published: Mapping[str, float]) -> None:
        """Record the state at the time to which the cluster has advanced."""
        elapsed = cluster.now_seconds - self._last_seconds
        self._last_seconds = cluster.now_seconds
        counts = {name: cluster.counts(name) for name in cluster.variants}
        self.points.append(
            Point(
                seconds=cluster.now_seconds - self._scenario.warm_up_seconds,
                cost_rate=sum(
                    counts[name].held * item.price_per_hour for name, item in cluster.variants.items()
                ),
                models=tuple(
                    self._model(cluster, model.model_id, elapsed) for model in self._scenario.models
                ),
                variants=tuple(
                    VariantPoint(
                        name=name,
                        published=published.get(name),
                        wanted=self._wanted(name, published.get(name)),
                        spec=seen.spec,
                        ready=seen.ready,
                        starting=seen.starting,
                    )
                    for name, seen in counts.items()
                ),
            )
        )

    def _wanted(self, name: str, metric: float | None) -> float | None:
        return None if metric is None else metric / self._per_replica.get(name, 1.0)

    def _model(self, cluster: VirtualCluster, model_id: str, elapsed_seconds: float) -> ModelPoint:
        arrived = cluster.traffic.arrived(model_id)
        came, self._arrived[model_id] = arrived - self._arrived[model_id], arrived
        finished = cluster.traffic.finished[model_id]
        done, self._read[model_id] = finished[self._read[model_id] :], len(finished)
        gaps = [item.inter_token_latency_seconds for item in done if item.request.output_tokens > 1]
        return ModelPoint(
            model_id=model_id,
            arrivals_per_second=came / elapsed_seconds if elapsed_seconds else 0.0,
            ttft_p90_seconds=quantile(sorted(item.time_to_first_token_seconds for item in done), 0.9),
            itl_p90_seconds=quantile(sorted(gaps), 0.9),
        )


LAST_SECONDS = 300.0
"""Time for requests to finish after the end, without cost, in seconds."""


def run(
    scenario: Scenario,
    policy: Policy,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> PolicyOutcome:
    """Simulate a scenario and return its outcome, for callers without an event loop.

    `requests` are those of `scenario.requests()`: pass them to simulate a scenario several times. `progress`
    is called with the completed share.
    """
    return asyncio.run(play(scenario, policy, manifests=manifests, requests=requests, progress=progress))


async def play(
    scenario: Scenario,
    policy: Policy,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> PolicyOutcome:
    """Simulate a scenario like `run`, in a running event loop."""
    asked = scenario.requests() if requests is None else requests
    traffic = Traffic(
        asked, patience_seconds=scenario.patience_seconds, routing=scenario.routing, seed=scenario.seed
    )
    cluster = VirtualCluster(scenario, manifests or manifests_of(scenario), traffic)
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
    traffic.advance(scenario.end_seconds + LAST_SECONDS)
    return score(
        scenario,
        policy,
        requests=asked,
        finished=traffic.finished,
        abandoned={model.model_id: traffic.abandoned(model.model_id) for model in scenario.models},
        points=recorder.points,
        replica_seconds=replica_seconds,
    )


def _scale(
    cluster: VirtualCluster, autoscalers: Mapping[str, Autoscaler | None], published: Mapping[str, float]
) -> None:
    for name, autoscaler in autoscalers.items():
        metric = published.get(name)
        if autoscaler is not None:
            pods = len(cluster.pods_of(name))
            replicas = cluster.replicas[name]
            wanted = autoscaler.sync(cluster.now_seconds, replicas=replicas, pods=pods, metric=metric)
            cluster.scale(name, wanted)
        elif metric is not None:
            cluster.scale(name, round(metric))
