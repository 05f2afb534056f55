"""Simulate one scenario with one policy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.closedloop.cluster import VirtualCluster
from controller.closedloop.manifests import manifests_of
from controller.closedloop.recording import Recorder
from controller.closedloop.scoring import scored
from controller.closedloop.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.manifests import Manifests
    from controller.closedloop.outcome import PolicyOutcome
    from controller.closedloop.policy import Policy
    from controller.closedloop.scenario import Scenario
    from controller.simulation.request import Request

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
    return scored(
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
