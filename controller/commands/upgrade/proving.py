"""Proof that every stored object survives conversion, before anything is stored in a new version.

Each object is read in both versions, one reading is converted locally and compared with the other, and spec
and status are written in both versions by dry run, that is, through admission and the conversion webhook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from apiserver.cluster.namespaces import INSTALLATION
from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.comparison import difference
from controller.commands.upgrade.findings import Failure
from controller.commands.upgrade.reaching import is_of_conversion, listed_in_every_version, shown_by_made_up
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import Pace, failures_of, retry, steadily

_PAUSES_SECONDS: Final = (0.05,) * 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The number of objects, those that fail, and why the made-up object was inconclusive, if so."""

    objects: int
    failures: tuple[Failure, ...]
    refusal: str


async def prove(cluster: Cluster, kind: Kind, pace: Pace, *, namespace: str = INSTALLATION) -> Proof:
    """Prove every object. Raises UnreadableError if conversion cannot read any, and ClusterError."""
    refusal = await shown_by_made_up(cluster, kind, namespace)
    items = await listed_in_every_version(cluster, kind, pace)
    failures = await failures_of(items, partial(_try, cluster, kind), pace)
    return Proof(objects=len(items), failures=failures, refusal=refusal)


def there_and_back(readings: list[Json]) -> str:
    """Return what is wrong with the readings of one object in all its versions; empty if nothing."""
    for one in readings:
        for other in readings:
            here, there = one["apiVersion"], other["apiVersion"]
            if found := difference(convert(convert(one, there), here), one):
                return f"{found} is lost in the conversion from {here} to {there} and back"
            if found := difference(convert(other, here), one):
                return f"{found} differs between {here} and {there}"
    return ""


async def _try(cluster: Cluster, kind: Kind, item: Json) -> str:
    """Return why an object fails; empty if it does not."""
    try:
        return await _attempt(cluster, kind, item["metadata"])
    except NotFound:
        return ""  # deleted in the meantime
    except Conflict:
        return "it is changed continuously: stop its writer"
    except ClusterError as error:
        if isinstance(error, Unavailable) and not is_of_conversion(error):
            raise  # not caused by the object
        return error.message


async def _attempt(cluster: Cluster, kind: Kind, metadata: Json) -> str:
    async def read(version: str) -> Json:
        return await cluster.get(
            resource_of(kind, version), metadata["name"], namespace=metadata["namespace"]
        )

    async def compared() -> str:
        readings = [await read(version.name) for version in kind.versions]
        if len({reading["metadata"]["resourceVersion"] for reading in readings}) > 1:
            raise Conflict("it was written between two reads")
        return there_and_back(readings)

    async def written(version: str, subresource: str | None) -> str:
        reading = await read(version)
        answer = await cluster.replace(
            resource_of(kind, version), reading, subresource=subresource, dry_run=True
        )
        # Admission may default a spec, which conversion is not to blame for; it never sees a status.
        found = difference(answer, reading) if subresource else ""
        return f"{found} is changed by a write in {version}" if found else ""

    found = await _retry_conflicts(compared)
    for version in kind.versions:
        for subresource in (None, "status"):
            found = found or await _retry_conflicts(partial(written, version.name, subresource))
    return found


async def _retry_conflicts(attempt: Callable[[], Awaitable[str]]) -> str:
    """Retry until no concurrent write interferes; raise the last Conflict if one always does."""
    return await retry(partial(steadily, attempt), Conflict, _PAUSES_SECONDS)
