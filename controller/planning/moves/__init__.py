"""Making room by moving what runs: `fewest_evictions` says what, `states` and `ways` how it is found."""

from controller.planning.moves.states import Evictions, fewest_evictions
from controller.planning.moves.ways import Kind

__all__ = ["Evictions", "Kind", "fewest_evictions"]
