"""The Kubernetes API as we use it: raw JSON in and out, a time limit on every call, our errors only."""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

from apiserver.cluster.errors import Expired, Unavailable
from apiserver.cluster.resource import PODS
from apiserver.cluster.selection import Selection
from apiserver.cluster.slim_import import load_client_library
from apiserver.cluster.transport import Call, Transport
from apiserver.cluster.watch_stream import WatchEvent, events_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType, TracebackType

    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

T = TypeVar("T")
_Listed: TypeAlias = tuple[list[T], str]

CALL_SECONDS = 10.0
"""How long one call may take unless its caller says otherwise."""
LIST_SECONDS = 60.0
"""How long one page of a list may take."""
PAGE_SIZE = 500
_WATCH_SLACK_SECONDS = 30.0
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class Cluster:
    """A connection to one API server. Use as `async with await Cluster.connect() as cluster`.

    Every method raises `ClusterError` and nothing else; returned objects belong to the caller.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Find the server by the usual rules: this file, `KUBECONFIG`, the pod's account, `~/.kube/config`.

        Nothing is sent yet. Raises `NotConfigured`.
        """
        library = await asyncio.to_thread(_load_library)  # in a thread: a server goes on answering meanwhile
        credentials = library.Credentials(kubeconfig, context, environ=environ)
        configuration = await credentials.load()
        api = library.ApiClient(configuration)
        api.user_agent = "stowplan"
        return cls(Transport(api, credentials))

    @property
    def host(self) -> str:
        """The server's base address."""
        return self._transport.host

    def fenced(self, may_write: Callable[[], bool]) -> Self:
        """Return this connection for one of several replicas; `NotLeading` where it may not write any more.

        That is asked whenever a request other than GET is about to be sent: a process that was frozen in the
        middle of its work must not finish it after another one took over.
        """
        return type(self)(self._transport.fenced(may_write))

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Read one object."""
        path = resource.path(namespace, name, subresource=subresource)
        return await self._transport.json(Call(method="GET", path=path, timeout_seconds=timeout_seconds))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        page_size: int = PAGE_SIZE,
    ) -> Json:
        """Read all objects, in pages, as one list: `items`, and `metadata.resourceVersion` to watch from."""
        selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        return await self.list_selection(selection, page_size=page_size)

    async def list_selection(self, selection: Selection, *, page_size: int = PAGE_SIZE) -> Json:
        """`list`, for a selection.

        When the continue token expires on the way, the list is read once more, in one piece.
        """
        items, version = await self.list_kept(selection, lambda item: item, page_size=page_size)
        return {
            "apiVersion": selection.resource.api_version,
            "kind": f"{selection.resource.kind}List",
            "metadata": {"resourceVersion": version},
            "items": items,
        }

    async def list_kept(
        self, selection: Selection, kept: Callable[[Json], T], *, page_size: int = PAGE_SIZE
    ) -> _Listed[T]:
        """Return what `kept` makes of each object, page by page, and the version to watch from."""
        try:
            return await self._list_pages(selection, kept, page_size)
        except Expired:
            return await self._list_pages(selection, kept, 0)

    async def _list_pages(
        self, selection: Selection, kept: Callable[[Json], T], page_size: int
    ) -> _Listed[T]:
        found: list[T] = []
        continue_token = ""
        while True:
            page = await self._list_page(selection, page_size, continue_token=continue_token)
            for item in page.get("items") or []:
                if not selection.metadata_only:  # lists of built-in kinds leave these out of their items
                    item.setdefault("apiVersion", selection.resource.api_version)
                    item.setdefault("kind", selection.resource.kind)
                found.append(kept(item))
            continue_token = page["metadata"].get("continue") or ""
            if not continue_token:
                return found, str(page["metadata"]["resourceVersion"])

    async def _list_page(self, selection: Selection, page_size: int, *, continue_token: str) -> Json:
        query = selection.query()
        if page_size:
            query["limit"] = str(page_size)
        if continue_token:
            query["continue"] = continue_token
        call = Call(
            method="GET",
            path=selection.path,
            query=query,
            accept=selection.accept(as_list=True),
            timeout_seconds=LIST_SECONDS,
        )
        page = await self._transport.json(call)
        if not _metadata(page).get("resourceVersion"):
            raise Unavailable(f"GET {selection.path}: the response is not a list")
        return page

    async def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int
    ) -> AsyncGenerator[WatchEvent]:
        """Follow what happens after `resource_version`, until the server ends it after `timeout_seconds`.

        A normal end is no error: resume after the last event's version. Raises `Expired` when the version is
        too old, and `Unavailable` when the stream breaks or outlasts the time that the server was given.
        Close it when you leave early (`contextlib.aclosing`): it holds a connection.
        """
        query = selection.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        call = Call(
            method="GET",
            path=selection.path,
            query=query,
            accept=selection.accept(as_list=False),
            timeout_seconds=timeout_seconds + _WATCH_SLACK_SECONDS,
        )
        async with self._transport.open(call) as response:
            async for event in events_of(response.content.iter_any()):
                yield event

    async def create(
        self,
        resource: Resource,
        body: Json,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Create an object, by default in the namespace that it names; `AlreadyExists` if it is there."""
        call = Call(
            method="POST",
            path=resource.path(namespace or _metadata(body).get("namespace")),
            query=_dry_run(dry_run),
            body=body,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def replace(
        self,
        resource: Resource,
        body: Json,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Write a whole object; `Conflict` if it names a `metadata.resourceVersion` that is not current."""
        metadata = _metadata(body)
        call = Call(
            method="PUT",
            path=resource.path(metadata.get("namespace"), metadata.get("name", ""), subresource=subresource),
            query=_dry_run(dry_run),
            body=body,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: Literal["Foreground", "Background", "Orphan"] | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Delete an object; `Conflict` if it no longer has the uid or version that were given."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if present := {key: value for key, value in preconditions.items() if value}:
            options["preconditions"] = present
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        call = Call(
            method="DELETE",
            path=resource.path(namespace, name),
            body=options,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def apply(
        self,
        resource: Resource,
        body: Json,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Server-side apply: own exactly the fields of `body`, create the object if it is not there.

        Raises `Conflict` when another manager owns one of them with another value, unless forced.
        """
        metadata = _metadata(body)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"} | _dry_run(dry_run)
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        call = Call(
            method="PATCH",
            path=resource.path(metadata.get("namespace"), metadata.get("name", ""), subresource=subresource),
            query=query,
            body=identity | body,
            content_type=_APPLY_PATCH,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def patch_json(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Json],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Apply JSON patch operations (RFC 6902); `Invalid` when a `test` fails or a path is not there."""
        call = Call(
            method="PATCH",
            path=resource.path(namespace, name, subresource=subresource),
            body=[*operations],
            content_type=_JSON_PATCH,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def patch_merge(
        self,
        resource: Resource,
        name: str,
        change: Json,
        *,
        namespace: str | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Apply a merge patch (RFC 7386); `Conflict` if its `metadata.resourceVersion` is not current."""
        call = Call(
            method="PATCH",
            path=resource.path(namespace, name),
            body=change,
            content_type=_MERGE_PATCH,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Evict a pod (policy/v1): `Throttled` where a PodDisruptionBudget does not allow it now.

        `Conflict` if the pod no longer has the uid.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        call = Call(
            method="POST",
            path=PODS.path(namespace, name, subresource="eviction"),
            query=_dry_run(dry_run),
            body=eviction,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)

    async def get_path(
        self, path: str, *, query: Mapping[str, str] | None = None, timeout_seconds: float = CALL_SECONDS
    ) -> Json:
        """Read the JSON object at any path, as in `/version` or `/apis`."""
        call = Call(method="GET", path=path, query=dict(query or {}), timeout_seconds=timeout_seconds)
        return await self._transport.json(call)


def _load_library() -> ModuleType:
    load_client_library()
    return importlib.import_module("apiserver.cluster.credentials")


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _dry_run(wanted: bool) -> dict[str, str]:
    return {"dryRun": "All"} if wanted else {}
