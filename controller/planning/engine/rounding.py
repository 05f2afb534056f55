"""A primal heuristic: the best mix of each model at some prices, as far as there are places.

At the prices of the LP solution these mixes use about the available capacity. Models take turns by priority,
so what does not fit is missing at the lowest priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.assign import best_fit
from controller.planning.engine.headroom import Headroom
from controller.planning.engine.options import NONE
from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.engine.assign import Assignment
    from controller.planning.engine.options import Options
    from controller.planning.problem import PlacementProblem


def rounded(problem: PlacementProblem, options: Options, replicas: Sequence[int]) -> Assignment:
    """Return the replicas that limits allow and for which best-fit decreasing finds places."""
    turns = _turns(options)
    return best_fit(problem, _within_limits(problem, options, replicas, turns), turns)


def _turns(options: Options) -> list[int]:
    """Return the level of the demand of each variant's model, or the number of levels without one."""
    turns = np.full(len(options.first), len(options.levels), dtype=np.int64)
    for model, level in enumerate(options.level[Stage.DEMAND].tolist()):
        if level != NONE:
            turns[list(options.members[model])] = level
    return turns.tolist()


def _within_limits(
    problem: PlacementProblem, options: Options, replicas: Sequence[int], turns: Sequence[int]
) -> list[int]:
    """Return the replicas that respect the limits, granting as many as remain to each variant in turn."""
    counts = [min(count, least) for count, least in zip(replicas, options.lower.tolist(), strict=True)]
    headroom = Headroom(problem, counts)
    for v in sorted(range(len(counts)), key=lambda v: turns[v]):
        more = headroom.most(v, replicas[v] - counts[v])
        headroom.take(v, more)
        counts[v] += more
    return counts
