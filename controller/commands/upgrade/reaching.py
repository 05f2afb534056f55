"""Whether objects can be read through conversion, as opposed to a busy server or network.

A made-up object is created by dry run in each version, to detect an unreachable converter even in a cluster
without objects. Only errors that mention conversion count against it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, Invalid, Unavailable
from apiserver.schema.json import Json, same
from apiserver.schema.kind import Kind
from controller.commands.upgrade.findings import Failure
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import Pace, failures_of, patiently, steadily
from controller.commands.upgrade.runs import StoppedError

_CONVERSION_SECONDS: Final = 40.0
"""A timeout in seconds, longer than that of the API server for a converter, so that the server reports it."""
_SIGN: Final = "conversion webhook for"
"""The text by which errors of conversion are recognized. Source:
`apiextensions-apiserver/pkg/apiserver/conversion`."""
_MADE_UP_SPEC: Final[Json] = {
    "modelID": "stowplan/made-up",
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "made-up"},
    "variantCost": "10.50",
}


class UnreadableError(StoppedError):
    """Conversion does not respond, or fails for some objects, which are listed if they are known."""


def is_of_conversion(error: ClusterError) -> bool:
    """Tell whether the API server reports a failure of conversion."""
    return _SIGN in error.message


async def shown_by_made_up(cluster: Cluster, kind: Kind, namespace: str) -> str:
    """Create an object in each version by dry run; return why that was inconclusive, or empty.

    Raises UnreadableError if conversion does not respond or changes the object, and ClusterError.
    """
    for version in kind.versions:
        wanted = made_up(kind, version.name, namespace)
        create = partial(
            cluster.create,
            resource_of(kind, version.name),
            wanted,
            dry_run=True,
            timeout_seconds=_CONVERSION_SECONDS,
        )
        try:
            answer = await steadily(create)
        except (Forbidden, Invalid) as error:
            return error.message  # rejected for another reason, before or after conversion
        except Unavailable as error:
            raise (UnreadableError(error.message) if is_of_conversion(error) else error) from error
        if lost := [name for name, item in _MADE_UP_SPEC.items() if not _says(answer, name, item)]:
            raise UnreadableError(f"spec.{lost[0]} of a test object came back changed in {version.name}")
    return ""


def made_up(kind: Kind, version: str, namespace: str) -> Json:
    """Return an object that every version can express and that has no effect."""
    metadata = {"generateName": "stowplan-made-up-", "namespace": namespace}
    return {
        "apiVersion": f"{kind.group}/{version}",
        "kind": kind.kind,
        "metadata": metadata,
        "spec": dict(_MADE_UP_SPEC),
    }


async def listed_in_every_version(cluster: Cluster, kind: Kind, pace: Pace) -> list[Json]:
    """Return all objects, in the oldest version.

    Raises UnreadableError if another version cannot be read because of conversion, and ClusterError.
    """
    oldest, *others = (resource_of(kind, version.name) for version in kind.versions)
    items: list[Json] = (await steadily(partial(cluster.list, oldest)))["items"]
    for resource in others:
        try:
            await steadily(partial(cluster.list, resource))
        except Unavailable as error:
            # A cache that conversion keeps from filling only asks to wait: single reads show the cause.
            failures = await _unreadable(cluster, kind, resource.version, items, pace)
            if failures or is_of_conversion(error):
                message = failures[0].message if failures else error.message
                raise UnreadableError(message, failures) from error
            raise
    return items


async def _unreadable(
    cluster: Cluster, kind: Kind, version: str, items: list[Json], pace: Pace
) -> tuple[Failure, ...]:
    async def tried(item: Json) -> str:
        read = partial(
            cluster.get,
            resource_of(kind, version),
            item["metadata"]["name"],
            namespace=item["metadata"]["namespace"],
            timeout_seconds=_CONVERSION_SECONDS,
        )
        try:
            await patiently(read)
        except ClusterError as error:
            return error.message if is_of_conversion(error) else ""
        return ""

    return await failures_of(items, tried, pace)


def _says(answer: Json, name: str, item: object) -> bool:
    return same((answer.get("spec") or {}).get(name), item)
