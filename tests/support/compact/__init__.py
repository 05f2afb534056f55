"""The compact formulation of placement: the tests' independent oracle.

`model` formulates the whole problem as one CP-SAT model with a variable per replica count and per (bin,
variant) flow, and solves it level by level (`lexicographic`). `variables` has its variables, `pods` the rules
of pods, node by node, and `assignment` assigns a node to each new replica. It shares the problem record with
the engine but no code, so a result that both produce is confirmed twice.
"""

from support.compact.model import place

__all__ = ["place"]
