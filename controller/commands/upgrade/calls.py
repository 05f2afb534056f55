"""Calls to the API server: retries, rate limits, polling, and changes and deletion of many objects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from apiserver.cluster.access import is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Throttled, Unavailable
from apiserver.cluster.resource import Resource, Selection
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.planning.wording import count

_AT_ONCE: Final = 8
_THROTTLED_PAUSES_SECONDS: Final = (1.0,) * 30
_UNAVAILABLE_PAUSES_SECONDS: Final = (0.3, 1.0)
CONFLICT_PAUSES_SECONDS: Final = (0.05,) * 39
"""The pauses before a write that conflicts with others is repeated, for two seconds."""
_POLL_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 120.0
"""The time in seconds after which a deletion counts as blocked."""
CHANGING: Final = "it is changed continuously: stop its writer"
_REVIEWS: Final = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An object that cannot be changed, and why; with these members in `failures`."""

    namespace: str
    name: str
    message: str


class StoppedError(Exception):
    """A step could not be completed; the message says how to continue."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """The maximum number of objects per second, and a callback for progress (done, total, and of what)."""

    per_second: float
    tell: Callable[[int, int, str], None]
    what: str = "objects"

    def of(self, what: str) -> Pace:
        """Return the same pace for work that progress names so, such as `pods`."""
        return replace(self, what=what)


async def each(items: Sequence[_T], work: Callable[[_T], Awaitable[_R]], pace: Pace) -> list[_R]:
    """Process every item concurrently and return the results in order; raise the first error.

    The rate is limited, to keep the load on a large cluster low.
    """
    gate, done = asyncio.Semaphore(_AT_ONCE), 0
    began = asyncio.get_running_loop().time()

    async def one(position: int, item: _T) -> _R:
        nonlocal done
        async with gate:
            due = began + position / pace.per_second
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            result = await work(item)
        done += 1
        pace.tell(done, len(items), pace.what)
        return result

    tasks: list[asyncio.Task[_R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(position, item)) for position, item in enumerate(items)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


async def retry(
    attempt: Callable[[], Awaitable[_T]],
    errors: type[ClusterError] | tuple[type[ClusterError], ...],
    pauses_seconds: Iterable[float],
) -> _T:
    """Return the result of an attempt, retried after each pause while it raises one of `errors`.

    A delay requested by the server replaces the pause. Raises the last error.
    """
    for pause in pauses_seconds:
        try:
            return await attempt()
        except errors as error:
            await asyncio.sleep(error.retry_after_seconds or pause)
    return await attempt()


async def patiently(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of an attempt, retried while throttled; raise Throttled after half a minute.

    After a definition changes, the API server's caches take a moment to fill.
    """
    return await retry(attempt, Throttled, _THROTTLED_PAUSES_SECONDS)


async def steadily(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of an attempt, retried a few times while Unavailable."""
    return await retry(partial(patiently, attempt), Unavailable, _UNAVAILABLE_PAUSES_SECONDS)


async def wait_out(
    remainder: Callable[[], Awaitable[str]], *, within_seconds: float = PATIENCE_SECONDS
) -> None:
    """Poll until there is no remainder to wait for; it is a text, such as `x still exists`.

    Raises StoppedError with this text if it takes longer.
    """
    deadline = asyncio.get_running_loop().time() + within_seconds
    while text := await remainder():
        if asyncio.get_running_loop().time() > deadline:
            raise StoppedError(f"{text} after {within_seconds:.0f} s; run this command again")
        await asyncio.sleep(_POLL_SECONDS)


def resource_of(kind: Kind, version: str) -> Resource:
    """Return the resource type of a kind in one version."""
    return Resource(group=kind.group, version=version, plural=kind.plural, kind=kind.kind)


async def get_if_present(
    cluster: Cluster, resource: Resource, name: str, namespace: str | None = None
) -> Json | None:
    """Return one object, or None if it does not exist."""
    try:
        return await cluster.get(resource, name, namespace=namespace)
    except NotFound:
        return None


async def list_metadata(
    cluster: Cluster,
    resource: Resource,
    namespace: str | None = None,
    *,
    labels: str | None = None,
    fields: str | None = None,
) -> list[Json]:
    """Return the metadata of the selected objects; empty if the kind is not installed."""
    call = partial(
        cluster.list,
        resource,
        namespace=namespace,
        label_selector=labels,
        field_selector=fields,
        metadata_only=True,
    )
    try:
        return list((await patiently(call))["items"])
    except NotFound:
        return []


async def delete_all(
    cluster: Cluster, resource: Resource, items: Sequence[Json], pace: Pace, *, waits: bool = False
) -> None:
    """Delete objects that still exist, but no namesakes of them; on request, wait until they are gone.

    Raises ClusterError, and StoppedError if one is not gone in time.
    """

    async def delete(item: Json) -> None:
        name, namespace, uid = (item["metadata"].get(it) for it in ("name", "namespace", "uid"))
        with suppress(NotFound, Conflict):  # it is gone, or replaced by a namesake, or being deleted
            await steadily(partial(cluster.delete, resource, name, namespace=namespace, uid=uid))

        async def remainder() -> str:
            present = await list_metadata(cluster, resource, namespace, fields=f"metadata.name={name}")
            is_left = uid in [it["metadata"]["uid"] for it in present]
            return f"{resource.kind} {name} still exists" if is_left else ""

        if waits:
            await wait_out(remainder)

    await each(items, delete, pace.of(resource.plural))


async def list_where(cluster: Cluster, resource: Resource, is_due: Callable[[Json], bool]) -> list[Json]:
    """Return the objects in all namespaces that meet a condition."""
    selection = Selection(resource=resource)
    items, _ = await steadily(
        lambda: cluster.list_kept(selection, lambda item: item if is_due(item) else None)
    )
    return [item for item in items if item is not None]


async def change_all(
    cluster: Cluster,
    resource: Resource,
    is_due: Callable[[Json], bool],
    change: Callable[[Json], Awaitable[object]],
    pace: Pace,
    *,
    complaint: str = "could not be written; run this command again",
) -> int:
    """Change every object that is due, and return their number.

    After a conflict, an object is read again, and changed unless it is no longer due. `change` returns why an
    object cannot be changed, if it is a text. Raises ClusterError if the list cannot be read, and
    StoppedError with the objects that failed: their number and `complaint` are its message.
    """

    async def write(item: Json) -> str:
        metadata = item["metadata"]
        read = partial(cluster.get, resource, metadata["name"], namespace=metadata.get("namespace"))
        known: Json | None = item

        async def attempt() -> str:
            nonlocal known
            now = known if known is not None else await steadily(read)
            known = None
            result = await steadily(partial(change, now)) if is_due(now) else ""
            return result if isinstance(result, str) else ""

        try:
            return await retry(attempt, Conflict, CONFLICT_PAUSES_SECONDS)
        except NotFound:
            return ""  # deleted in the meantime
        except Conflict:
            return CHANGING
        except ClusterError as error:
            return error.message

    items = await list_where(cluster, resource, is_due)
    if failures := await failures_of(items, write, pace):
        raise StoppedError(f"{count(len(failures), 'object')} {complaint}", failures)
    return len(items)


async def failures_of(
    items: Sequence[Json], work: Callable[[Json], Awaitable[str]], pace: Pace
) -> tuple[Failure, ...]:
    """Process every object concurrently, as `each`; `work` returns why an object fails, or empty."""
    messages = await each(items, work, pace)
    return tuple(
        Failure(
            namespace=item["metadata"].get("namespace", ""), name=item["metadata"]["name"], message=message
        )
        for item, message in zip(items, messages, strict=True)
        if message
    )


async def missing_permissions(cluster: Cluster, needed: Iterable[str]) -> tuple[str, ...]:
    """Return those of the needed permissions that the user lacks.

    They are given as `update customresourcedefinitions/status.apiextensions.k8s.io` or, for one namespace,
    `get services in stowplan-system`.
    """
    missing = []
    for permission in needed:
        review = {
            "apiVersion": _REVIEWS.api_version,
            "kind": _REVIEWS.kind,
            "spec": {"resourceAttributes": resource_attributes(permission)},
        }
        if not is_allowed(await cluster.create(_REVIEWS, review)):
            missing.append(permission)
    return tuple(missing)


def resource_attributes(permission: str) -> dict[str, str]:
    """Return the attributes of an access review for `VERB PLURAL[/SUB][.GROUP][ NAME][ in NAMESPACE]`."""
    verb, _, rest = permission.partition(" ")
    what, _, namespace = rest.partition(" in ")
    kind, _, name = what.partition(" ")
    path, _, group = kind.partition(".")
    plural, _, subresource = path.partition("/")
    return {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
        "namespace": namespace,
    }
