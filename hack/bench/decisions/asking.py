"""Requests to pods in a cycle, counted by the source that the real reconciler scrapes, with 1,000 pods."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json
from controller.closedloop.cluster import VirtualCluster
from controller.closedloop.manifests import manifests_of
from controller.closedloop.named import silent
from controller.closedloop.pods import moment
from controller.closedloop.reconciled import ReconciledPolicy
from controller.closedloop.scenario import Model, NodeGroup, Scenario
from controller.closedloop.series import series_of
from controller.closedloop.traffic import Traffic
from controller.observe.readings import reading_of
from controller.observe.scraping import Scraped
from controller.simulation.curve import Curve
from controller.simulation.server import Server
from hack.bench.decisions import fleet
from hack.bench.decisions.rows import drawn

PODS: Final = 1000
_CYCLES: Final = 3
_INTERVAL_SECONDS: Final = 15.0


@dataclass(kw_only=True)
class CountingSource:
    """A source of metrics that returns those of an idle engine for every pod, and counts the requests."""

    now_seconds: float = 0.0
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Requests since the start of the cycle, by namespace and pod."""

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        """Return a reading for each pod."""
        keys = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        self.asked.update(keys)
        series = series_of(Server(fleet.H100))
        time_seconds = moment(self.now_seconds).timestamp()
        return Scraped(
            readings={key: reading_of(series, time_seconds=time_seconds) for key in keys}, failures={}
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """The maximum numbers of requests over several cycles."""

    pods: int
    requests: int
    most_per_pod: int


def asking(pods: int = PODS) -> Asking:
    """Return the requests of cycles to a number of ready pods."""
    scenario = _scenario(pods)
    source = CountingSource()
    policy = ReconciledPolicy(scenario, source=source)
    cluster = VirtualCluster(scenario, manifests_of(scenario), Traffic({fleet.MODEL: []}))
    requests, most_per_pod = [], []
    for cycle in range(_CYCLES):
        source.asked.clear()
        source.now_seconds = cycle * _INTERVAL_SECONDS
        cluster.advance(source.now_seconds)
        with silent():
            asyncio.run(policy.publish(cluster))
        requests.append(source.asked.total())
        most_per_pod.append(max(source.asked.values()))
    return Asking(pods=pods, requests=max(requests), most_per_pod=max(most_per_pod))


def _scenario(pods: int) -> Scenario:
    h100, l40s = fleet.pair(initial=(pods // 2, pods - pods // 2))
    workload = drawn(Curve(shape="constant", high=1.0))
    model = Model(model_id=fleet.MODEL, workload=workload, targets=fleet.TARGETS)
    nodes = tuple(
        NodeGroup(accelerator=kind, accelerators=8, count=pods // 8 + 1) for kind in ("H100", "L40S")
    )
    return Scenario(name="asking", models=(model,), variants=(h100, l40s), nodes=nodes)
