"""Reads which adapters the loaders next to engines have loaded, after changes and until all are loaded."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from apiserver.schema.json import Json
from controller.engines.exposition import UnreadableMetricsError
from controller.expansion.adapters import LOADER
from controller.expansion.loading import Told
from controller.expansion.parts import BACKEND_LABEL
from controller.observe.pods import is_present, is_ready

Key = tuple[str, str]
"""Namespace and name of a Model."""

_MOST_SHOWN: Final = 300
_MOST_ADAPTERS: Final = 256
"""The number of adapters that are kept of a report: twice as many as a backend may have."""

PODS_AT_A_TIME: Final = 8
"""The number of pods of one Model that are read concurrently."""

_MODEL_SECONDS: Final = 10.0
"""The time after which no further pod of a Model is read. Silent pods would delay other Models."""

_UNREAD: Final = f"it was not read: others took {_MODEL_SECONDS:g} s"

_Run = tuple[str, int]
"""UID of a pod and the restart count of its containers: a restart may lose the loaded adapters."""


class PodReader(Protocol):
    """Reads pages from pods, and from no other address."""

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return a pod's response. Raises UnreadableMetricsError with the reason if there is none."""


class AdapterReader:
    """Caches each pod's report until more adapters are wanted of it."""

    def __init__(self, pods: PodReader, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._pods = pods
        self._seconds = seconds
        self._known: dict[Key, dict[_Run, Told]] = {}

    async def reports(
        self, model: Key, wanted: Mapping[str, Mapping[str, str]], pods: Sequence[Json]
    ) -> Sequence[Told]:
        """Return the reports of the ready pods of some backends. A silent pod does not delay the others."""
        if not wanted:
            self._known.pop(model, None)
            return ()
        running = {
            _run_of(pod): pod
            for pod in pods
            if pod["metadata"]["labels"].get(BACKEND_LABEL) in wanted and is_present(pod) and is_ready(pod)
        }
        known = self._known.get(model, {})
        gate, due = asyncio.Semaphore(PODS_AT_A_TIME), self._seconds() + _MODEL_SECONDS

        async def look(run: _Run) -> Told:
            async with gate:
                return await self._look(running[run], known.get(run), wanted, due)

        # Silent pods come last, so that there is time for others, and take turns.
        turns = dict.fromkeys(run for run in (*known, *running) if run in running)
        runs = sorted(turns, key=lambda run: bool(run in known and known[run].silent))
        reports = dict(zip(runs, await asyncio.gather(*map(look, runs)), strict=True))
        self._known[model] = dict(sorted(reports.items(), key=lambda item: item[1].silent != _UNREAD))
        return [reports[run] for run in running]

    def forget(self, model: Key) -> None:
        """Drop the reports of a deleted Model."""
        self._known.pop(model, None)

    async def _look(
        self, pod: Json, known: Told | None, wanted: Mapping[str, Mapping[str, str]], due: float
    ) -> Told:
        name, backend = str(pod["metadata"]["name"]), str(pod["metadata"]["labels"][BACKEND_LABEL])
        if known is not None and not (known.silent or known.lacks(wanted[backend])):
            return known
        port = _port(pod)
        if port is None:
            return Told(pod=name, backend=backend)  # from an earlier template: it loads none at run time
        if self._seconds() > due:
            return Told(pod=name, backend=backend, silent=_UNREAD)
        try:
            page = json.loads(await self._pods.read(pod, port, "/"))
            return Told(
                pod=name, backend=backend, loaded=_texts(page["loaded"]), failed=_texts(page["failed"])
            )
        except UnreadableMetricsError as error:
            return Told(pod=name, backend=backend, silent=str(error))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return Told(pod=name, backend=backend, silent="the response is not that of a loader")


def _texts(value: Json) -> dict[str, str]:
    return {
        str(name)[:_MOST_SHOWN]: str(text)[:_MOST_SHOWN]
        for name, text in itertools.islice(value.items(), _MOST_ADAPTERS)
    }


def _run_of(pod: Json) -> _Run:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(pod["metadata"]["uid"]), sum(int(item.get("restartCount") or 0) for item in statuses)


def _port(pod: Json) -> int | None:
    """Return the port on which a pod's loader reports its state, or None if it has no loader."""
    for container in pod["spec"]["containers"]:
        if container["name"] == LOADER:
            return next((int(port["containerPort"]) for port in container.get("ports") or []), None)
    return None
