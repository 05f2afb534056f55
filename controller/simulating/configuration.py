"""The controller's configuration, as far as it can be played."""

from __future__ import annotations

from controller.offline.configuring import Configuring
from controller.reconcilers.variantautoscaling import CycleSettings


def cycle_settings_of(configuring: Configuring) -> CycleSettings:
    """Return what counts in a cycle.

    Node pools and evictions do not: nobody adds nodes or evicts pods in virtual time. Nor does advice: what
    it would have come to is what is asked.
    """
    return CycleSettings(
        scale_to_zero=configuring.scales_to_zero,
        grace_seconds=configuring.grace_seconds,
        minimum_hold_seconds=configuring.minimum_hold_seconds,
        budgets=configuring.terms.budgets,
        pod_deletion_cost=configuring.terms.steers_removal,
        sizing=configuring.sizing,
    )
