"""Cores: what models with one column take is certain, and whoever has a choice finds room beside them."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from planning_builders import LIMITS
from small_problems import choosy_problem, is_possible, small_problem
from support.campaign import often

from controller.planning.columns.asked import Asking
from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.core import Core, CoreProgram
from controller.planning.columns.greedy import greedy, resumed
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.phase import FORBIDDEN, in_small_numbers, weighted
from controller.planning.columns.pool import Pool, pool_of
from controller.planning.columns.pricing import Pricing
from controller.planning.columns.resources import resources_of
from controller.planning.columns.room import Room
from controller.planning.columns.selection import replicas_of
from controller.planning.problem import EXACT_LIMIT

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.market import Quote
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.selection import Selection
    from controller.planning.problem import PlacementProblem


class _World:
    """A small problem in columns, and a first answer to it."""

    def __init__(self, seed: int) -> None:
        make = choosy_problem if seed % 3 == 0 else small_problem
        self.problem: PlacementProblem = make(Random(seed))
        self.resources = resources_of(self.problem)
        self.levels = levels_of(self.problem)
        cohorts = cohorts_of(self.problem, self.resources, self.levels)
        self.pools: list[Pool] = [pool_of(cohort, first_mixes(cohort)).compact() for cohort in cohorts]
        self.asking = Asking(self.problem, self.resources)
        pricing = Pricing(self.pools, self.resources, self.levels, is_complete=True, deadline_seconds=np.inf)
        self.phase: Phase
        self.quote: Quote
        self.phase, self.quote = pricing.together(pricing.priced(pricing.joint).prices.rows)
        self.answer: Selection = greedy(self.pools, self.resources, self.asking, self.quote)

    def solved(self, pairs: list[Integers]) -> Selection:
        """Return what a core of such columns comes to, per pool (k, 2)."""
        core = Core(pairs=tuple(pairs), is_complete=False)
        program = CoreProgram(self.pools, self.resources, self.asking, self.phase, core)
        found, _ = program.solve(self.answer, placed=None, bound=0, gap=0.0, limits=LIMITS)
        assert found is not None
        return found

    def is_possible(self, selection: Selection) -> bool:
        """Tell by a judge of its own whether everybody has room."""
        replicas = replicas_of(self.pools, selection, len(self.problem.variants)).tolist()
        return is_possible(self.problem, replicas, selection.added.tolist())

    @property
    def held(self) -> list[Integers]:
        """The answer's columns, as pairs of a model and its column."""
        return [np.column_stack([np.arange(len(columns)), columns]) for columns in self.answer.columns]


def _worlds() -> list[_World]:
    """Return those with an answer to begin with: where pods keep apart, room for them is only likely."""
    worlds = [_World(seed) for seed in range(often(120))]
    return [
        world
        for world in worlds
        if np.isfinite(world.phase.value(world.answer))
        and (world.is_possible(world.answer) or not world.resources.is_apart.any())
    ]


def test_a_core_without_a_choice_is_the_answer_itself() -> None:
    """All is certain then: new replicas, limits, who leaves, and what others find where they were."""
    for world in _worlds():
        found = world.solved(world.held)
        for columns, same in zip(found.columns, world.answer.columns, strict=True):
            assert (columns == same).all()
        assert world.phase.value(found) <= world.phase.value(world.answer)
        assert world.is_possible(found)


def test_who_has_a_choice_finds_room_beside_what_is_certain() -> None:
    """One model may choose among all its columns; it ends no worse, and the others keep theirs."""
    chosen = 0
    for number, world in enumerate(_worlds()):
        pairs = world.held
        pool = number % len(pairs)
        model = number % len(pairs[pool])
        usable = np.flatnonzero(world.phase.objectives[pool][model] < FORBIDDEN)
        others = pairs[pool][pairs[pool][:, 0] != model]
        own = np.column_stack([np.full(len(usable), model), usable])
        mixed = np.concatenate([others, own])
        pairs[pool] = mixed[np.lexsort([mixed[:, 1], mixed[:, 0]])]
        found = world.solved(pairs)
        assert world.phase.value(found) <= world.phase.value(world.answer)
        assert world.is_possible(found)
        moved = [np.flatnonzero(a != b) for a, b in zip(found.columns, world.answer.columns, strict=True)]
        assert all(set(rows.tolist()) <= ({model} if at == pool else set()) for at, rows in enumerate(moved))
        chosen += sum(len(rows) for rows in moved)
    assert chosen


def test_what_is_taken_up_again_has_room_and_moves_only_who_wants_to() -> None:
    """An answer that nobody wants changed stays; wishes are granted as far as there is room."""
    for world in _worlds():
        given = world.pools, world.resources, world.asking, world.quote
        same = resumed(*given, start=world.answer.columns, wanted=world.answer.columns)
        if same is None:  # nodes are counted cautiously where sizes do not divide each other
            continue
        assert all((a == b).all() for a, b in zip(same.columns, world.answer.columns, strict=True))
        best = [reduced.argmin(axis=1) for reduced in world.quote.reduced]
        wished = resumed(*given, start=world.answer.columns, wanted=best)
        assert wished is not None
        assert world.is_possible(wished) or world.resources.is_apart.any()


def test_small_numbers_say_about_the_same() -> None:
    """Whatever is summed stays exact, and is off by no more than half of one for each model and node."""
    for world in _worlds():
        times = 2.0**60
        large = [np.where(np.isfinite(o), o * times, o) for o in world.phase.objectives]
        huge = _with(world.phase, large, times)
        small, worth = in_small_numbers(huge, world.resources)
        assert sum(float(np.where(np.isfinite(o), o, 0).max(axis=1).sum()) for o in small.objectives) <= (
            EXACT_LIMIT + sum(len(o) for o in large)
        )
        models = sum(len(columns) for columns in world.answer.columns) + int(world.answer.added.sum())
        counted = huge.value(world.answer)
        off = abs(small.value(world.answer) * worth - counted)
        assert off <= 0.5 * models * worth + 1e-12 * counted


def _with(phase: Phase, objectives: list[Floats], times: float) -> Phase:
    return replace(phase, objectives=tuple(objectives), growth_price=phase.growth_price * times)


def test_all_levels_weighed_together_rule_out_what_no_node_takes() -> None:
    """A column without a home, or one that stands further to the left already, is never chosen."""
    for world in _worlds():
        made = weighted(world.pools, world.resources, world.levels)
        for pool, objective in zip(world.pools, made.objectives, strict=True):
            assert (np.isinf(objective) == (pool.repeated | pool.homeless)).all()


def test_whoever_finds_room_was_told_that_there_might_be_some() -> None:
    """The cheap look is never wrong when it says no, and says no often enough to be worth it."""
    admitted, refused = 0, 0
    for world in _worlds():
        room = Room(resources=world.resources, bin_price=world.quote.bin_price)
        asked = world.asking.of_all(world.pools, world.answer.columns)
        assert world.answer.placed is not None
        if not room.adopt(
            world.asking.nothing(world.pools), asked, placed=world.answer.placed, added=world.answer.added
        ):  # sizes that do not divide each other are counted with care
            continue
        for pool, columns in zip(world.pools, world.answer.columns, strict=True):
            for model, held in enumerate(columns.tolist()):
                others = np.arange(pool.cost.shape[1])
                before = world.asking.of(pool, np.array([model]), np.array([held]))
                after = world.asking.of(pool, np.full(len(others), model), others)
                for turn, may in enumerate(room.may_exchange(before, after).tolist()):
                    finds = copy(room).exchange([before], [after.only(turn)])
                    assert may or not finds
                    admitted += finds
                    refused += not may
    assert admitted
    assert refused


def test_an_answer_says_where_its_replicas_have_room() -> None:
    """As many as it asks for are placed, in bins where they may go, whoever found the answer."""
    placed = 0
    for world in _worlds():
        found = world.solved(world.held)
        for selection in (world.answer, found):
            asked = world.asking.of_all(world.pools, selection.columns)
            new = sum(part.new.sum(axis=0) for part in asked)
            assert selection.placed is not None
            assert (selection.placed.sum(axis=1) == new).all()
            assert (selection.placed >= 0).all()
            assert not selection.placed[~world.resources.allowed].any()
            placed += int(selection.placed.sum())
    assert placed
