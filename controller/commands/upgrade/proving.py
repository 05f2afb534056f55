"""Proof that every stored object survives conversion, before anything is stored in a new version.

A made-up object is created by dry run in each version, to detect an unreachable converter even in a cluster
without objects. Then each object is read in both versions, one reading is converted locally and compared with
the other, and spec and status are written in both versions by dry run, that is, through admission and the
conversion webhook. Only errors that mention conversion count against it, as opposed to a busy server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound, Unavailable
from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.kind import Kind
from controller.commands.upgrade.calls import (
    CHANGING,
    CONFLICT_PAUSES_SECONDS,
    Pace,
    StoppedError,
    failures_of,
    resource_of,
    retry,
    steadily,
)
from controller.planning.wording import count

_CONVERSION_SECONDS: Final = 40.0
"""A timeout in seconds, longer than that of the API server for a converter, so that the server reports it."""
_CONVERSION_ERROR: Final = "conversion webhook for"
"""The text by which errors of conversion are recognized. Source:
`apiextensions-apiserver/pkg/apiserver/conversion`."""
_MADE_UP_SPEC: Final[Json] = {
    "modelID": "stowplan/made-up",
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "made-up"},
    "variantCost": "10.50",
}
"""A spec that every version can express and that has no effect."""


class ConversionFailedError(StoppedError):
    """Conversion does not respond, or fails for some objects, which are listed if they are known."""


async def prove(cluster: Cluster, kind: Kind, pace: Pace, *, namespace: str) -> str:
    """Prove every object; return the result in one sentence.

    Raises StoppedError if objects fail, ConversionFailedError if conversion does, and ClusterError.
    """
    refusal = await _create_made_up(cluster, kind, namespace)
    oldest, *others = (resource_of(kind, version.name) for version in kind.versions)
    items: list[Json] = (await steadily(partial(cluster.list, oldest)))["items"]
    failures = await failures_of(items, partial(_reason, cluster, kind), pace)
    unreadable = tuple(item for item in failures if _CONVERSION_ERROR in item.message)
    if unreadable:
        raise ConversionFailedError(unreadable[0].message, unreadable)
    for resource in others:
        await _convert(partial(cluster.list, resource, metadata_only=True))
    if failures:
        raise StoppedError(
            f"verification failed for {len(failures)} of {count(len(items), 'object')};"
            " nothing is stored in another version yet, and both versions are served. Correct these"
            " objects and run this command again, or go back with stowplan downgrade",
            failures,
        )
    beside = f"; a test object was refused: {refusal}" if refusal else ""
    return f"{count(len(items), 'object')} converted and back without loss{beside}"


async def _create_made_up(cluster: Cluster, kind: Kind, namespace: str) -> str:
    """Create an object in each version by dry run; return why that was inconclusive, or empty.

    Raises ConversionFailedError if conversion does not respond or changes the object, and ClusterError.
    """
    for version in kind.versions:
        resource = resource_of(kind, version.name)
        body = {
            "apiVersion": resource.api_version,
            "kind": kind.kind,
            "metadata": {"generateName": "stowplan-made-up-", "namespace": namespace},
            "spec": dict(_MADE_UP_SPEC),
        }
        create = partial(cluster.create, resource, body, dry_run=True, timeout_seconds=_CONVERSION_SECONDS)
        try:
            spec = (await _convert(create)).get("spec") or {}
        except (Forbidden, Invalid) as error:
            return error.message  # rejected for another reason, before or after conversion
        if lost := [name for name, item in _MADE_UP_SPEC.items() if not same(spec.get(name), item)]:
            raise ConversionFailedError(
                f"spec.{lost[0]} of a test object came back changed in {version.name}"
            )
    return ""


async def _convert(call: Callable[[], Awaitable[Json]]) -> Json:
    try:
        return await steadily(call)
    except Unavailable as error:
        raise (ConversionFailedError(error.message) if _is_of_conversion(error) else error) from error


def _is_of_conversion(error: ClusterError) -> bool:
    return _CONVERSION_ERROR in error.message


async def _reason(cluster: Cluster, kind: Kind, item: Json) -> str:
    """Return why an object fails; empty if it does not. Raises errors that the object did not cause."""
    try:
        return await _prove_object(cluster, kind, item["metadata"])
    except NotFound:
        return ""  # deleted in the meantime
    except Conflict:
        return CHANGING
    except ClusterError as error:
        if isinstance(error, Unavailable) and not _is_of_conversion(error):
            raise
        return error.message


async def _prove_object(cluster: Cluster, kind: Kind, metadata: Json) -> str:
    async def read(version: str) -> Json:
        return await cluster.get(
            resource_of(kind, version),
            metadata["name"],
            namespace=metadata["namespace"],
            timeout_seconds=_CONVERSION_SECONDS,
        )

    async def compare() -> str:
        readings = [await read(version.name) for version in kind.versions]
        if len({reading["metadata"]["resourceVersion"] for reading in readings}) > 1:
            raise Conflict("it was written between two reads")
        return there_and_back(readings)

    async def write(version: str, subresource: str | None) -> str:
        reading = await read(version)
        resource = resource_of(kind, version)
        answer = await cluster.replace(resource, reading, subresource=subresource, dry_run=True)
        # Admission may default a spec, which conversion is not to blame for; it never sees a status.
        path = difference(answer, reading) if subresource else ""
        return f"{path} is changed by a write in {version}" if path else ""

    reason = await _retry_conflicts(compare)
    for version in kind.versions:
        for subresource in (None, "status"):
            reason = reason or await _retry_conflicts(partial(write, version.name, subresource))
    return reason


async def _retry_conflicts(attempt: Callable[[], Awaitable[str]]) -> str:
    return await retry(partial(steadily, attempt), Conflict, CONFLICT_PAUSES_SECONDS)


def there_and_back(readings: Sequence[Json]) -> str:
    """Return what is wrong with the readings of one object in all its versions; empty if nothing."""
    for one in readings:
        for other in readings:
            here, there = one["apiVersion"], other["apiVersion"]
            if path := difference(convert(convert(one, there), here), one):
                return f"{path} is lost in the conversion from {here} to {there} and back"
            if path := difference(convert(other, here), one):
                return f"{path} differs between {here} and {there}"
    return ""


def difference(one: Json, other: Json) -> str:
    """Return the path of the first field in which two objects differ; empty if they are equal.

    The version and the metadata that the server maintains are ignored.
    """
    return next(_differences(_comparable(one), _comparable(other), ""), "")


def _comparable(value: Json) -> Json:
    metadata = value.get("metadata") or {}
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    others = {name: item for name, item in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    return others | {"metadata": kept}


def _differences(one: JsonValue, other: JsonValue, path: str) -> Iterator[str]:
    if not isinstance(one, dict) or not isinstance(other, dict):
        if not same(one, other):
            yield path
        return
    for name in sorted({*one, *other}):
        below = f"{path}.{name}" if path else name
        if (name in one) != (name in other):
            yield below
        else:
            yield from _differences(one[name], other[name], below)
