"""How often the reconciler asks each engine for its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apiserver.schema.json import Json
from controller.closedloop.cluster import VirtualCluster
from controller.closedloop.manifests import manifests_of
from controller.closedloop.named import silent
from controller.closedloop.pods import moment
from controller.closedloop.reconciled import ReconciledPolicy
from controller.closedloop.scenario import Scenario
from controller.closedloop.series import series_of
from controller.closedloop.traffic import Traffic
from controller.engines.readings import reading_of
from controller.engines.scraping import Scraped
from controller.simulation.server import Server


@dataclass(kw_only=True)
class CountingSource:
    """A source of metrics of idle engines that counts the requests to each pod."""

    server: Server
    now_seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        """Return a reading for each pod."""
        names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        self.asked.update(name for _, name in names)
        series, seconds = series_of(self.server), moment(self.now_seconds).timestamp()
        readings = {key: reading_of(series, time_seconds=seconds) for key in names}
        return Scraped(readings=readings, failures={})


async def test_a_cycle_asks_each_ready_pod_once(scenario: Scenario) -> None:
    """Three cycles with four ready pods of two variants."""
    variants = tuple(replace(item, initial_replicas=2) for item in scenario.variants)
    several = replace(scenario, variants=variants)
    source = CountingSource(server=Server(variants[0].profile))
    policy = ReconciledPolicy(several, source=source)
    cluster = VirtualCluster(several, manifests_of(several), Traffic({"m": []}))

    for cycle in range(1, 4):
        source.now_seconds = 15.0 * cycle
        cluster.advance(source.now_seconds)
        with silent():
            await policy.publish(cluster)

        assert source.asked == dict.fromkeys(cluster.pods, cycle)
    assert len(cluster.pods) == 4
