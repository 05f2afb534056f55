"""The Kubernetes API client: raw JSON in and out, a timeout on every call, only errors of our own."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

from apiserver.cluster.errors import Expired, Oversized, Unavailable
from apiserver.cluster.resource import JSON_TYPE, PODS, Selection
from apiserver.cluster.slim_import import credentials_module
from apiserver.cluster.transport import CALL_SECONDS, Call, Transport, WatchEvent, events_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json, JsonValue

T = TypeVar("T")
_Listed: TypeAlias = tuple[list[T], str]

LIST_SECONDS = 60.0
"""The timeout of one page of a list, in seconds."""
PAGE_SIZE = 500
_PAGE_BYTES = 8 << 20
"""The size above which a page is read in smaller ones. Decoded, it may take many times as much memory."""
_WATCH_SLACK_SECONDS = 30.0
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class Cluster:
    """A connection to one API server. Use as `async with await Cluster.connect() as cluster`.

    Every method raises only `ClusterError`. The caller owns the returned objects and may change them.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | str | None = None,
        context: str | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Locate the API server and load the credentials, without sending a request.

        In order of precedence: `kubeconfig`, `KUBECONFIG`, the pod's service account, `~/.kube/config`. An
        empty text counts as unset. Raises `NotConfigured`.
        """
        # In a thread, to keep a running server responsive.
        library = await asyncio.to_thread(credentials_module)
        credentials = library.Credentials(kubeconfig, context, environ=environ)
        configuration = await credentials.load()
        api = library.ApiClient(configuration)
        api.user_agent = "stowplan"
        return cls(Transport(api, credentials))

    @property
    def host(self) -> str:
        """The base URL of the API server."""
        return self._transport.host

    def with_fence(self, may_write: Callable[[], bool]) -> Self:
        """Return this connection with write fencing, for use with leader election.

        Before each request other than GET, `may_write` is called, and `NotLeading` is raised if it returns
        False: a process that was frozen must not complete its writes after another replica has become leader.
        """
        return type(self)(self._transport.with_fence(may_write))

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
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
        """Return one object."""
        path = resource.path(namespace, name, subresource=subresource)
        return await self._json("GET", path, timeout_seconds=timeout_seconds)

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
        """Return all objects as one list, read in pages, with `metadata.resourceVersion` to watch from.

        If the continue token expires, the list is read again in one piece.
        """
        selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        items, version = await self.list_kept(selection, lambda item: item, page_size=page_size)
        return {
            "apiVersion": resource.api_version,
            "kind": f"{resource.kind}List",
            "metadata": {"resourceVersion": version},
            "items": items,
        }

    async def list_kept(
        self, selection: Selection, reduce: Callable[[Json], T], *, page_size: int = PAGE_SIZE
    ) -> _Listed[T]:
        """Return `reduce(object)` for each object, read in pages, and the resource version to watch from."""
        try:
            return await self._list_pages(selection, reduce, page_size)
        except Expired:
            return await self._list_pages(selection, reduce, 0)

    async def _list_pages(
        self, selection: Selection, reduce: Callable[[Json], T], page_size: int
    ) -> _Listed[T]:
        items: list[T] = []
        continue_token, size = "", page_size
        while True:
            try:
                page = await self._list_page(selection, size, continue_token=continue_token)
            except Oversized:
                size = max(1, size // 8)
                continue
            size = min(page_size, size * 2)
            for item in page.get("items") or []:
                if not selection.metadata_only:  # the items of a list of a built-in kind lack these
                    item.setdefault("apiVersion", selection.resource.api_version)
                    item.setdefault("kind", selection.resource.kind)
                items.append(reduce(item))
            continue_token = page["metadata"].get("continue") or ""
            if not continue_token:
                return items, str(page["metadata"]["resourceVersion"])

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
            limit_bytes=_PAGE_BYTES if page_size > 1 else None,
            timeout_seconds=LIST_SECONDS,
        )
        page = await self._transport.json(call)
        if not _metadata(page).get("resourceVersion"):
            raise Unavailable(f"GET {selection.path}: the response is not a list")
        return page

    async def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events after `resource_version`, until the server ends the watch after `timeout_seconds`.

        A normal end is not an error: resume from the version of the last event. Raises `Expired` if the
        version is too old, and `Unavailable` if the stream breaks or exceeds the requested time. Close the
        generator when leaving early (`contextlib.aclosing`), since it holds a connection.
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
        """Create an object, by default in its own namespace. Raises `AlreadyExists` if it exists."""
        path = resource.path(namespace or _metadata(body).get("namespace"))
        return await self._json(
            "POST", path, query=_dry_run(dry_run), body=body, timeout_seconds=timeout_seconds
        )

    async def replace(
        self,
        resource: Resource,
        body: Json,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Replace an object. Raises `Conflict` if its `metadata.resourceVersion`, if set, is not current."""
        path = _own_path(resource, body, subresource)
        return await self._json(
            "PUT", path, query=_dry_run(dry_run), body=body, timeout_seconds=timeout_seconds
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        propagation_policy: Literal["Foreground", "Background", "Orphan"] | None = None,
    ) -> Json:
        """Delete an object. Raises `Conflict` if the given uid does not match."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        return await self._json("DELETE", resource.path(namespace, name), body=options)

    async def apply(
        self,
        resource: Resource,
        body: Json,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Create or update an object by server-side apply, to own exactly the fields of `body`.

        Raises `Conflict` if another field manager owns one of them with a different value, unless forced.
        """
        return await self._json(
            "PATCH",
            _own_path(resource, body, subresource),
            query={"fieldManager": field_manager, "force": "true" if force else "false"},
            body={"apiVersion": resource.api_version, "kind": resource.kind} | body,
            content_type=_APPLY_PATCH,
            timeout_seconds=timeout_seconds,
        )

    async def patch_json(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Json],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """Apply a JSON patch (RFC 6902). Raises `Invalid` if a `test` fails or a path does not exist."""
        path = resource.path(namespace, name, subresource=subresource)
        return await self._json("PATCH", path, body=[*operations], content_type=_JSON_PATCH)

    async def patch_merge(
        self,
        resource: Resource,
        name: str,
        change: Json,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """Apply a merge patch (RFC 7386). Raises `Conflict` if `metadata.resourceVersion` is outdated."""
        path = resource.path(namespace, name, subresource=subresource)
        return await self._json("PATCH", path, body=change, content_type=_MERGE_PATCH)

    async def evict(self, namespace: str, name: str, *, uid: str, dry_run: bool = False) -> Json:
        """Evict a pod (policy/v1). Raises `Throttled` if a PodDisruptionBudget does not allow it now.

        Raises `Conflict` if the uid does not match.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = PODS.path(namespace, name, subresource="eviction")
        return await self._json("POST", path, query=_dry_run(dry_run), body=eviction)

    async def get_path(self, path: str, *, query: Mapping[str, str] | None = None) -> Json:
        """Return the JSON object at any path, such as `/version` or `/apis`."""
        return await self._json("GET", path, query=query)

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = JSON_TYPE,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        call = Call(
            method=method,
            path=path,
            query=dict(query or {}),
            body=body,
            content_type=content_type,
            timeout_seconds=timeout_seconds,
        )
        return await self._transport.json(call)


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _own_path(resource: Resource, body: Json, subresource: str | None) -> str:
    metadata = _metadata(body)
    return resource.path(metadata.get("namespace"), metadata.get("name", ""), subresource=subresource)


def _dry_run(is_dry: bool) -> dict[str, str]:
    return {"dryRun": "All"} if is_dry else {}
