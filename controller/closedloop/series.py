"""The metrics of an engine as series, without the detour through the text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.observe.said import Series
from controller.simulation.exposition import EngineCollector

if TYPE_CHECKING:
    from controller.simulation.engine import Engine


def series_of(engine: Engine) -> list[Series]:
    """Return all series of the engine's exposition."""
    return [
        Series(name=sample.name, labels=sample.labels, value=float(sample.value))
        for family in EngineCollector(engine).collect()
        for sample in family.samples
    ]
