"""The HorizontalPodAutoscaler of a variant whose metric is a number of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.closedloop.autoscaler import Autoscaler

if TYPE_CHECKING:
    from controller.closedloop.scenario import Scenario, VariantSetup


def follower(scenario: Scenario, variant: VariantSetup) -> Autoscaler:
    """Return the HPA; a variant that starts without replicas counts as scaled to zero by its HPA."""
    return Autoscaler(
        behaviour=scenario.published_behaviour(variant),
        min_replicas=variant.min_replicas,
        max_replicas=variant.max_replicas,
        target_average=1.0,
        has_scaled_to_zero=variant.initial_replicas == 0,
    )
