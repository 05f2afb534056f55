"""What a search goes through on its way: no answer is given up for a worse one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from controller.planning.columns.incumbent import Incumbent
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from hack.bench.placement.worlds import world

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = replace(Settings(), wall_seconds=600, relief_solves=0)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return a list that gets the values of every answer that a search has, in order."""
    found: list[list[int]] = []

    def watched(name: str) -> None:
        improve: Callable[..., object] = getattr(Incumbent, name)

        def watch(self: Incumbent, *given: object, **named: object) -> object:
            found.append(list(self.values))
            result = improve(self, *given, **named)
            found.append(list(self.values))
            return result

        monkeypatch.setattr(Incumbent, name, watch)

    for name in ("improve_together", "improve_first", "improve", "_accept"):
        watched(name)
    return found


@pytest.mark.parametrize(
    ("models", "seed", "effort"),
    [(20, 0, 1.0), (40, 1, 0.2), (70, 5, 0.2), (70, 7, 0.2), (130, 5, 0.2), (60, 3, 1e-3)],
)
def test_a_search_never_gives_up_what_it_has(
    models: int, seed: int, effort: float, reached: list[list[int]]
) -> None:
    """Level by level in their order: what is settled early stays as good when later ones are improved."""
    made, _ = plan(
        world("plan-scarce", models, seed=seed),
        PlanningState(),
        replace(SETTINGS, deterministic_seconds=effort),
    )
    assert len(reached) > 2
    assert reached == sorted(reached, reverse=True)
    assert [level.value for level in made.solver.levels] <= reached[-1]
    assert all(level.bound <= level.value for level in made.solver.levels)
