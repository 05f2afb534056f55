"""Proofs of a solution at each level, and their transfer to another solution of the same problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import Proof


def with_values(proofs: Sequence[Proof], values: Sequence[int]) -> tuple[Proof, ...]:
    """Return the proofs applied to other values: bounds are void after the first level that is worse.

    A level with a better value only tightens the problems of later levels, so that their bounds hold.
    """
    made: list[Proof] = []
    holds = True
    for proof, value in zip(proofs, values, strict=True):
        bound = min(proof.bound, value) if holds else 0
        # The last level is cost, whose total is the value itself.
        total = value if len(made) == len(proofs) - 1 else proof.total
        made.append(replace(proof, value=value, bound=bound, total=total))
        holds = holds and value <= proof.value
    return tuple(made)
