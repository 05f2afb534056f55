"""The metrics of a server as series, without the detour through the text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.engines.metrics import Series
from controller.simulation.exposition import EngineCollector

if TYPE_CHECKING:
    from controller.simulation.server import Server


def series_of(server: Server) -> list[Series]:
    """Return all series of the server's exposition."""
    return [
        Series(name=sample.name, labels=sample.labels, value=float(sample.value))
        for family in EngineCollector(server).collect()
        for sample in family.samples
    ]
