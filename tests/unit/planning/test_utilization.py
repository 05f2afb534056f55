"""How full replicas get, as a sentence about one of their variants says it."""

from __future__ import annotations

from planning_builders import variant

from controller.planning.demand import provided_rate
from controller.planning.utilization import utilization

VARIANTS = (variant("other", serves=10_000_000), variant("own", serves=500_000), variant("unknown"))
"""They serve 10 requests per second, 0.5, and nobody knows how many."""


def test_own_replicas_come_first_and_others_have_names() -> None:
    """Who looks sees its own replicas without a name."""
    found = utilization(VARIANTS, (2, 4, 7), requests_per_second=11)

    assert found is not None
    assert found.seen_from(0) == "50 % of 2 x 10 + 4 x 0.5 own"
    assert found.seen_from(1) == "50 % of 4 x 0.5 + 2 x 10 other"
    assert found.seen_from(2) == "50 % of 2 x 10 other + 4 x 0.5 own"


def test_what_serves_nothing_is_not_listed() -> None:
    """A variant without replicas is no part of it, nor one of which nobody knows what it serves."""
    found = utilization(VARIANTS, (0, 4, 7), requests_per_second=0.5)

    assert found is not None
    assert found.seen_from(1) == "25 % of 4 x 0.5"
    assert provided_rate(VARIANTS, (0, 4, 7)) == 2_000_000


def test_nothing_serves_anything() -> None:
    """Without a known capacity there is no share to speak of."""
    assert utilization(VARIANTS, (0, 0, 7), requests_per_second=0.5) is None
