"""The compact formulation of placement: the tests' independent oracle.

`model` states the whole problem as one CP-SAT model with a variable per replica count and per (bin, variant)
flow, and solves it level by level (`lexicographic`). `variables` are its variables, `pods` the rules of pods,
node by node, and `assignment` names a node for each new replica. It shares the problem record with the engine
and none of its code, so an answer that both give is right twice.
"""

from support.compact.model import place

__all__ = ["place"]
