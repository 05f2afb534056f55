"""GET and PUT through the API server, with and without conversion."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.schema.json import Json
from hack.calling import variants
from hack.calling.received import submitted_object
from hack.controlplane.client import Client

_WARM_UP: Final = 5
_NAME: Final = "bench-hub"

READ_STORED: Final = "GET, stored and requested in v1alpha2"
READ_OLD: Final = "GET, stored in v1alpha2, requested in v1alpha1"
READ_OLD_STORED: Final = "GET, stored in v1alpha1, requested in v1alpha2"
WRITE_STORED: Final = "PUT in v1alpha2"
WRITE_OLD: Final = "PUT in v1alpha1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits:
    """Latency of the calls of one type."""

    calls: int
    p50_ms: float
    p99_ms: float


def waits(seconds: Sequence[float]) -> Waits:
    """Summarize the durations of calls; percentiles are by nearest rank."""
    p50, p99 = (float(value) * 1e3 for value in np.percentile(seconds, (50, 99), method="inverted_cdf"))
    return Waits(calls=len(seconds), p50_ms=p50, p99_ms=p99)


def measure_calls(client: Client, *, calls: int) -> dict[str, Waits]:
    """Return the latency of each type of call, interleaved on one connection. Raises RefusedError."""
    value = submitted_object(variants.current(1))
    value["metadata"]["name"] = _NAME
    client.call("POST", variants.collection(HUB), value)
    hub, spoke = f"{variants.collection(HUB)}/{_NAME}", f"{variants.collection(SPOKE)}/{_NAME}"
    old = variants.legacy(0)["metadata"]["name"]
    sorts: dict[str, Callable[[int], float]] = {
        READ_STORED: lambda _: client.timed("GET", hub)[0],
        READ_OLD: lambda _: client.timed("GET", spoke)[0],
        READ_OLD_STORED: lambda _: client.timed("GET", f"{variants.collection(HUB)}/{old}")[0],
        WRITE_STORED: lambda number: _time_put(client, hub, number),
        WRITE_OLD: lambda number: _time_put(client, spoke, number),
    }
    taken: dict[str, list[float]] = defaultdict(list)
    for number in range(-_WARM_UP, calls):
        for name, run in sorts.items():
            seconds = run(number)
            if number >= 0:
                taken[name].append(seconds)
    client.call("DELETE", hub)
    return {name: waits(seconds) for name, seconds in taken.items()}


def _time_put(client: Client, path: str, number: int) -> float:
    """Change an object's spec; return the duration of the PUT in seconds."""
    value: Json = client.value("GET", path)
    value["spec"]["variantCost"] = f"{100 + number}.25"
    seconds, answered = client.timed("PUT", path, value)
    if json.loads(answered)["spec"]["variantCost"] != value["spec"]["variantCost"]:
        raise RuntimeError(f"{path} was not changed")
    return seconds
