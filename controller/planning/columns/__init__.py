"""Placement by pattern columns, prices and a core: `place` is the one entry."""

from controller.planning.columns.place import place

__all__ = ["place"]
