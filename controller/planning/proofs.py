"""Proofs of an answer at each level, and how they look for another answer to the same problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import Proof, Solution


def worst(proofs: Sequence[Proof]) -> tuple[str, float]:
    """Return the name and the gap of the first level that is not proven best; no name where all are."""
    unproven = next((proof for proof in proofs if proof.gap), None)
    return (unproven.level, unproven.gap) if unproven else ("", 0.0)


def with_values(proofs: Sequence[Proof], values: Sequence[int]) -> tuple[Proof, ...]:
    """Return the proofs of another answer's values: behind a level that differs, bounds say nothing."""
    made: list[Proof] = []
    holds = True
    for proof, value in zip(proofs, values, strict=True):
        bound = min(proof.bound, value) if holds else 0
        # Nothing is a share of cost but cost itself, which comes last.
        total = value if len(made) == len(proofs) - 1 else proof.total
        made.append(replace(proof, value=value, bound=bound, total=total))
        holds = holds and value == proof.value
    return tuple(made)


def proven(solution: Solution, proofs: tuple[Proof, ...]) -> Solution:
    """Return the solution with proofs of its own."""
    unproven, gap = worst(proofs)
    return replace(solution, proofs=proofs, unproven=unproven, gap=gap)
