"""Choose evictions that make room: `fewest_evictions`, built on `states` and `ways`."""

from controller.planning.moves.states import Evictions, fewest_evictions
from controller.planning.moves.ways import Kind

__all__ = ["Evictions", "Kind", "fewest_evictions"]
