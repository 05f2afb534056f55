"""A primal heuristic: the best mix of each model at some prices, as far as there are places.

At the prices of the LP solution these mixes use about the available capacity. Replicas take turns by the
level that they serve, so what does not fit is missing at the least important levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.planning.engine.assign import Assignment, Claim, best_fit
from controller.planning.engine.filling import Headroom
from controller.planning.engine.options import NONE, Options
from controller.planning.problem import CountedReplicas, PlacementProblem, Stage


def round_down(problem: PlacementProblem, options: Options, replicas: Sequence[int]) -> Assignment:
    """Return the replicas that limits allow and for which best-fit decreasing finds places."""
    stays = [min(count, least) for count, least in zip(replicas, options.lower.tolist(), strict=True)]
    claims = sorted(_claims(problem, options, replicas, stays))
    return best_fit(problem, stays, _within_limits(problem, stays, claims))


def _claims(
    problem: PlacementProblem, options: Options, replicas: Sequence[int], stays: Sequence[int]
) -> Iterator[Claim]:
    """Yield the replicas beyond those that stay: for minimums, for the present load, then for demand."""
    needed = [0] * len(stays)
    size = [terms.accelerators_per_replica for terms in problem.variants]
    for row in problem.rows:
        if row.counted is not CountedReplicas.ALL or row.stage not in (Stage.MINIMUM, Stage.LOAD):
            continue
        missing = row.requirement - sum(amount * (stays[v] + needed[v]) for v, amount in row.terms)
        # The smallest replicas are the most likely to find a place.
        for v, amount in sorted(row.terms, key=lambda term: size[term[0]]):
            if amount and missing > 0 and replicas[v] > stays[v] + needed[v]:
                more = min(replicas[v] - stays[v] - needed[v], -(-missing // amount))
                yield Claim(options.levels.index(row.level), v, more)
                needed[v] += more
                missing -= more * amount
    for model, level in enumerate(options.level[Stage.DEMAND].tolist()):
        turn = len(options.levels) if level == NONE else level
        for v in options.members[model]:
            yield Claim(turn, v, replicas[v] - stays[v] - needed[v])


def _within_limits(
    problem: PlacementProblem, stays: Sequence[int], claims: Sequence[Claim]
) -> Iterator[Claim]:
    """Yield the claims as far as limits allow, granting as many as remain to each in turn."""
    headroom = Headroom(problem, stays)
    for claim in claims:
        more = headroom.most(claim.variant, claim.replicas)
        headroom.take(claim.variant, more)
        yield claim._replace(replicas=more)
