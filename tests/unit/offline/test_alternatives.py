"""The text about the alternative mix of a model."""

from __future__ import annotations

from decimal import Decimal

import pytest

from controller.offline.text import next_best
from controller.planning.decision import Alternative

TEXTS = {
    "a dearer mix": (2, 8, "1 a + 2 b, 2 more per hour"),
    "a cheaper mix": (-2, 0, "1 a + 2 b, 2 less per hour"),
    "a mix of the same cost": (0, 0, "1 a + 2 b, for the same cost"),
    "a mix that changes several more accelerators": (
        0,
        4,
        "1 a + 2 b, for the same cost, but 4 more accelerators start or stop",
    ),
    "a mix that changes one more accelerator": (
        0,
        1,
        "1 a + 2 b, for the same cost, but 1 more accelerator starts or stops",
    ),
    "a mix that changes fewer accelerators": (0, -4, "1 a + 2 b, for the same cost"),
}


@pytest.mark.parametrize(("cost", "disruption", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_the_text_states_why_the_alternative_is_not_better(cost: int, disruption: int, text: str) -> None:
    """Disruption decides only between mixes of equal cost."""
    mix = Alternative(
        replicas=(("a", 1), ("b", 2)),
        extra_cost=Decimal(cost),
        unmet_per_mille=0,
        extra_disruption=disruption,
    )

    assert next_best(mix) == text
