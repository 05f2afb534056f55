"""How full replicas get, as a sentence about one of their variants says it."""

from __future__ import annotations

from controller.planning.saturation import Capacity
from planning_builders import variant

from controller.planning.decision import CapacitySource
from controller.planning.utilisation import provided_tokens, utilisation

OWN, OTHER, UNKNOWN = variant("own"), variant("other"), variant("unknown")
VARIANTS = (OTHER, OWN, UNKNOWN)
CAPACITIES = (
    Capacity(tokens=10_000, source=CapacitySource.MEMORY),
    Capacity(tokens=500, source=CapacitySource.MEMORY),
    None,
)


def test_own_replicas_come_first_and_others_have_names() -> None:
    """Who looks sees its own replicas without a name."""
    found = utilisation(VARIANTS, CAPACITIES, (2, 4, 7), demand_tokens=11_000)

    assert found is not None
    assert found.seen_from(0) == "50 % of 2 x 10.0k + 4 x 500 own"
    assert found.seen_from(1) == "50 % of 4 x 500 + 2 x 10.0k other"
    assert found.seen_from(2) == "50 % of 2 x 10.0k other + 4 x 500 own"


def test_what_holds_nothing_is_not_listed() -> None:
    """A variant without replicas is no part of it, nor one of which nobody knows what it holds."""
    found = utilisation(VARIANTS, CAPACITIES, (0, 4, 7), demand_tokens=500)

    assert found is not None
    assert found.seen_from(1) == "25 % of 4 x 500"
    assert provided_tokens(CAPACITIES, (0, 4, 7)) == 2_000


def test_nothing_holds_anything() -> None:
    """Without a known capacity there is no share to speak of."""
    assert utilisation(VARIANTS, CAPACITIES, (0, 0, 7), demand_tokens=500) is None
