"""What a search goes through on its way: no answer is given up for a worse one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from controller.planning.columns.incumbent import Incumbent
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from hack.bench.placement.worlds import world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SETTINGS = replace(Settings(), wall_seconds=600, relief_solves=0)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Mapping[Incumbent, list[list[int]]]:
    """Return a mapping that gets, by search, the values of every answer that it has, in order."""
    found: defaultdict[Incumbent, list[list[int]]] = defaultdict(list)

    def watched(name: str) -> None:
        improve: Callable[..., object] = getattr(Incumbent, name)

        def watch(self: Incumbent, *given: object, **named: object) -> object:
            found[self].append(list(self.values))
            result = improve(self, *given, **named)
            found[self].append(list(self.values))
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
    models: int, seed: int, effort: float, reached: Mapping[Incumbent, list[list[int]]]
) -> None:
    """Level by level in their order: what is settled early stays as good when later ones are improved."""
    made, _ = plan(
        world("plan-scarce", models, seed=seed),
        PlanningState(),
        replace(SETTINGS, deterministic_seconds=effort),
    )
    assert any(len(answers) > 2 for answers in reached.values())
    for answers in reached.values():
        assert answers == sorted(answers, reverse=True)
        assert [level.value for level in made.solver.levels] <= answers[-1]
    assert all(level.bound <= level.value for level in made.solver.levels)
