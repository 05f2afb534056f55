"""Utilization of a model's replicas, as messages about one of its variants state it."""

from __future__ import annotations

from support.planning_builders import variant

from controller.planning.demand import provided_rate
from controller.planning.wording import utilization_text

VARIANTS = (variant("other", serves=10_000_000), variant("own", serves=500_000), variant("unknown"))
"""Variants whose replicas serve 10, 0.5, and an unknown number of requests per second."""


def test_own_replicas_come_first_and_those_of_other_variants_are_named() -> None:
    """The replicas of the variant that the message is about have no name."""
    found = [utilization_text(VARIANTS, (2, 4, 7), 11, position=position) for position in range(3)]

    assert found == [
        "50 % of 2 x 10 + 4 x 0.5 own",
        "50 % of 4 x 0.5 + 2 x 10 other",
        "50 % of 2 x 10 other + 4 x 0.5 own",
    ]


def test_variants_without_replicas_or_known_capacity_are_not_listed() -> None:
    """They provide no known capacity."""
    assert utilization_text(VARIANTS, (0, 4, 7), 0.5, position=1) == "25 % of 4 x 0.5"
    assert provided_rate(VARIANTS, (0, 4, 7)) == 2_000_000


def test_there_is_no_utilization_without_known_capacity() -> None:
    """All replicas are of the variant with unknown capacity."""
    assert utilization_text(VARIANTS, (0, 0, 7), 0.5, position=1) == ""
