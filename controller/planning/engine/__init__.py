"""The placement engine: patterns, a restricted master with exact pricing, and a CP-SAT core."""

from controller.planning.engine.place import Engine, alone, place

__all__ = ["Engine", "alone", "place"]
