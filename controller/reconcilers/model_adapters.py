"""Asks the loaders beside engines which adapters are there: where something changed, and until all are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from apiserver.schema.json import Json
from controller.models.adapters import LOADER
from controller.models.loading import Told
from controller.models.parts import BACKEND_LABEL
from controller.observe.pods import is_present, is_ready
from controller.observe.said import UnreadableMetricsError

Key = tuple[str, str]
"""Namespace and name of a Model."""

_MOST_SHOWN: Final = 300

_Run = tuple[str, int]
"""A pod, and how often its containers were started again: then it may have lost what it had."""


class PodReader(Protocol):
    """Asks pods, and nobody but pods."""

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return what a pod answers. Raises UnreadableMetricsError, which says why it does not."""


class AdapterReader:
    """Remembers what each pod told as long as that is all that is wanted of it."""

    def __init__(self, pods: PodReader) -> None:
        self._pods = pods
        self._known: dict[Key, dict[_Run, Told]] = {}

    async def told(
        self, model: Key, wanted: Mapping[str, Mapping[str, str]], pods: Sequence[Json]
    ) -> Sequence[Told]:
        """Return what the ready pods of some backends tell. One that is silent costs nobody else anything."""
        if not wanted:
            self._known.pop(model, None)
            return ()
        running = {
            _run_of(pod): pod
            for pod in pods
            if pod["metadata"]["labels"].get(BACKEND_LABEL) in wanted and is_present(pod) and is_ready(pod)
        }
        known = self._known.get(model, {})
        answers = await asyncio.gather(
            *(self._look(pod, known.get(run), wanted) for run, pod in running.items())
        )
        self._known[model] = dict(zip(running, answers, strict=True))
        return answers

    def forget(self, model: Key) -> None:
        """Forget a Model that is gone."""
        self._known.pop(model, None)

    async def _look(self, pod: Json, known: Told | None, wanted: Mapping[str, Mapping[str, str]]) -> Told:
        name, backend = str(pod["metadata"]["name"]), str(pod["metadata"]["labels"][BACKEND_LABEL])
        if known is not None and not (known.silent or known.lacks(wanted[backend])):
            return known
        port = _port(pod)
        if port is None:
            return Told(pod=name, backend=backend)  # of an earlier template: it has what it started with
        try:
            page = json.loads(await self._pods.read(pod, port, "/"))
            return Told(
                pod=name, backend=backend, loaded=_texts(page["loaded"]), failed=_texts(page["failed"])
            )
        except UnreadableMetricsError as error:
            return Told(pod=name, backend=backend, silent=str(error))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Told(pod=name, backend=backend, silent="the response is not that of a loader")


def _texts(value: Json) -> dict[str, str]:
    return {str(name)[:_MOST_SHOWN]: str(text)[:_MOST_SHOWN] for name, text in value.items()}


def _run_of(pod: Json) -> _Run:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(pod["metadata"]["uid"]), sum(int(item.get("restartCount") or 0) for item in statuses)


def _port(pod: Json) -> int | None:
    """Return where the loader of a pod tells how it stands; None where it has none."""
    for container in pod["spec"]["containers"]:
        if container["name"] == LOADER:
            return next((int(port["containerPort"]) for port in container.get("ports") or []), None)
    return None
