"""Record the observable state of a run at each tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.closedloop.outcome import ModelPoint, Point, VariantPoint
from controller.closedloop.scoring import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.scenario import Scenario


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
