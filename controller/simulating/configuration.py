"""Translate the controller's configuration to the settings that apply in a simulation."""

from __future__ import annotations

from controller.offline.configuring import Configuring
from controller.reconcilers.variantautoscaling import CycleSettings


def cycle_settings_of(configuring: Configuring) -> CycleSettings:
    """Return the settings of the simulated cycles.

    Node pools and evictions are left out: in virtual time nothing adds nodes or evicts pods. Advisory mode is
    left out, because the question is what its decisions would have done.
    """
    return CycleSettings(
        scale_to_zero=configuring.scales_to_zero,
        grace_seconds=configuring.grace_seconds,
        minimum_hold_seconds=configuring.minimum_hold_seconds,
        budgets=configuring.terms.budgets,
        pod_deletion_cost=configuring.terms.steers_removal,
        sizing=configuring.sizing,
    )
