"""The placement engine: column generation over replica patterns with exact pricing, and a CP-SAT core."""

from controller.planning.engine.place import Engine, alone, place

__all__ = ["Engine", "alone", "place"]
