"""Making room by moving what runs: `fewest_evictions` says what, `states` how it is found."""

from controller.planning.moves.states import Evictions, Kind, fewest_evictions

__all__ = ["Evictions", "Kind", "fewest_evictions"]
