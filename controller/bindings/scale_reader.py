"""Polling of the scale subresources of targets of any kind, at a limited rate, and a cache of the results.

The API server's discovery tells the resource of a kind and whether it has a scale subresource. Nothing is
requested unless an object names such a target.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.resource import Resource
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.observe.scales import (
    Scale,
    ScaleReference,
    ScaleTargets,
    UnreadableScaleError,
    scale_of,
    scaled_targets,
    with_scales,
)
from controller.observe.targets import TargetKey, TargetKind, target_key

_log = EventLogger(__name__)

_PAUSE_SECONDS: Final = 0.2
_ROUND_SECONDS: Final = 10.0
_DISCOVERY_SECONDS: Final = 300.0
_NOT_ASKED: Final = "its scale has not been read yet"


@dataclass(frozen=True, slots=True)
class _ScaleAnswer:
    content: Scale | str
    time_seconds: float


class ScaleReader:
    """The last known scales of targets, kept current by `run`."""

    def __init__(
        self,
        cluster: Cluster,
        references: Callable[[], Sequence[ScaleReference]],
        *,
        silent_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._references = references
        self._silent_seconds = silent_seconds
        self._clock = clock
        self._answers: dict[TargetKey, _ScaleAnswer] = {}
        self._templates: dict[TargetKey, Json] = {}
        self._resources: dict[tuple[str, str], tuple[Resource | None, float]] = {}

    async def run(self) -> None:
        """Read one scale after the other, each at most every ten seconds, until cancelled."""
        while True:
            began = self._clock()
            targets = scaled_targets(self._references())
            for known in (self._answers, self._templates):
                for key in known.keys() - targets.keys():
                    del known[key]
            for key, api_version in sorted(targets.items()):
                await self.read(key, api_version)
                await asyncio.sleep(_PAUSE_SECONDS)
            await asyncio.sleep(max(_PAUSE_SECONDS, _ROUND_SECONDS - (self._clock() - began)))

    async def read(self, key: TargetKey, api_version: str) -> None:
        """Read one scale; after a transient failure the last known one remains."""
        try:
            content: Scale | str = await self._ask(key, api_version)
        except UnreadableScaleError as error:
            content = str(error)
        except ClusterError as error:
            _log.info("scale not read", target=str(key), why=error.message)
            return
        self._answers[key] = _ScaleAnswer(content, self._clock())

    async def _ask(self, key: TargetKey, api_version: str) -> Scale:
        resource = await self.resource(api_version, key.own_kind)
        if resource is None:
            raise UnreadableScaleError(
                f"the cluster has no {key.own_kind} with a scale subresource in {api_version}"
            )
        try:
            value = await self._cluster.get(resource, key.name, namespace=key.namespace, subresource="scale")
        except NotFound as error:
            raise UnreadableScaleError(f"it does not exist in namespace {key.namespace!r}") from error
        except Forbidden as error:
            group = resource.group
            raise UnreadableScaleError(
                f"the controller is not allowed to get {resource.plural}/scale of {group}: grant this"
                " permission in a ClusterRole with the label stowplan.dev/aggregate-to-targets"
            ) from error
        return scale_of(value)

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind with a scale subresource, or None. Results are cached for a while.

        Raises the ClusterError of a failed discovery request.
        """
        known = self._resources.get((api_version, kind))
        if known is not None and self._clock() - known[1] < _DISCOVERY_SECONDS:
            return known[0]
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listed = (await self._cluster.get_path(path)).get("resources") or []
        except NotFound:
            listed = []
        resource = _scalable(listed, api_version, kind)
        self._resources[api_version, kind] = resource, self._clock()
        return resource

    def last_scales(self, pods: Sequence[Json]) -> ScaleTargets:
        """Return the current state of the targets, among all pods."""
        references = self._references()
        targets = scaled_targets(references)
        if not targets:
            return ScaleTargets(pods=pods)
        scales = {key: self.last_scale(key) for key in targets}
        claimed = (target_key(namespace, reference) for namespace, reference in references)
        others = frozenset(key for key in claimed if key.kind is not TargetKind.SCALED)
        scaled = with_scales(scales, pods, self._templates, claimed=others)
        self._templates |= {key: item["spec"]["template"] for key, item in scaled.workloads.items()}
        return scaled

    def last_scale(self, key: TargetKey) -> Scale | str:
        """Return a target's last known scale, or the reason why it is unknown."""
        answer = self._answers.get(key)
        if answer is None:
            return _NOT_ASKED
        if self._clock() - answer.time_seconds > self._silent_seconds:
            return f"its scale was last read {self._clock() - answer.time_seconds:.0f} s ago"
        return answer.content


def _scalable(listed: Sequence[Mapping[str, object]], api_version: str, kind: str) -> Resource | None:
    names = {str(item.get("name")) for item in listed}
    for item in listed:
        plural = str(item.get("name"))
        if item.get("kind") == kind and "/" not in plural and f"{plural}/scale" in names:
            group, _, version = api_version.rpartition("/")
            return Resource(group=group, version=version, plural=plural, kind=kind)
    return None
