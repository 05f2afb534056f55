"""What an engine serves, as series: the way by text is left out, not what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.observe.said import Series
from controller.simulation.exposition import EngineCollector

if TYPE_CHECKING:
    from controller.simulation.engine import Engine


def series_of(engine: Engine) -> list[Series]:
    """Return every series of the engine's exposition."""
    return [
        Series(name=sample.name, labels=sample.labels, value=float(sample.value))
        for family in EngineCollector(engine).collect()
        for sample in family.samples
    ]
