"""The third judge: a real API server, which creates objects with dry run."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from differential.findings import Finding, Findings, are_rules_unchecked, of_causes
from differential.twins import as_twin, twin_manifest, twin_path
from hack.controlplane import ControlPlane

CONNECTIONS: Final = 16
_DRY: Final = {"dryRun": "All", "fieldValidation": "Ignore"}
_INVALID: Final = 422
_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A server's response: the causes of a rejection, or the object as it would be stored."""

    findings: Findings
    stored: Json | None
    text: str = ""
    """The message of a rejection."""

    is_unchecked: bool = False
    """Whether no rule was checked because of errors by the schema."""


class Server:
    """An API server with the twin definitions."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str) -> None:
        self._session = session
        self._namespace = namespace

    async def judged(self, kind: Kind, version: Version, body: bytes) -> Answer:
        """Create an object with dry run."""
        return await self._asked("POST", twin_path(kind, version, self._namespace), body)

    async def judged_update(self, kind: Kind, version: Version, name: str, body: bytes) -> Answer:
        """Replace a stored object with dry run."""
        return await self._asked("PUT", f"{twin_path(kind, version, self._namespace)}/{name}", body)

    async def stored(self, kind: Kind, version: Version, body: bytes) -> Answer:
        """Create an object."""
        return await self._asked("POST", twin_path(kind, version, self._namespace), body, params={})

    async def install(self, kind: Kind, version: Version) -> None:
        """Apply the definition of a twin, and wait until the server validates by it."""
        await self.define(twin_manifest(kind, version))
        probe = as_twin(kind, version, {"metadata": {"name": "probe"}, "spec": 1})
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while (await self.judged(kind, version, json.dumps(probe).encode())).stored is not None:  # noqa: ASYNC110 (there is no event, here and below)
                await asyncio.sleep(_POLL_SECONDS)

    async def define(self, manifest: Json) -> None:
        """Apply a CustomResourceDefinition and wait until it is served."""
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"
        params = {"fieldManager": "judges", "force": "true"}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        async with self._session.patch(path, params=params, headers=headers, json=manifest) as response:
            text = await response.text()
            assert response.ok, text
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await self._is_served(manifest):  # noqa: ASYNC110 (as above)
                await asyncio.sleep(_POLL_SECONDS)

    async def remove(self, manifest: Json) -> None:
        """Delete a CustomResourceDefinition."""
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"
        async with self._session.delete(path) as response:
            assert response.ok, await response.text()

    async def _is_served(self, manifest: Json) -> bool:
        """Tell whether objects can be created; a server may still use a deleted definition."""
        spec = manifest["spec"]
        api_version = f"{spec['group']}/{spec['versions'][0]['name']}"
        path = f"/apis/{api_version}/namespaces/{self._namespace}/{spec['names']['plural']}"
        probe = {"apiVersion": api_version, "kind": spec["names"]["kind"], "metadata": {"name": "probe"}}
        async with self._session.post(path, params=_DRY, json=probe) as response:
            return response.ok or response.status == _INVALID

    async def _asked(
        self, method: str, path: str, body: bytes, *, params: dict[str, str] | None = None
    ) -> Answer:
        headers = {"Content-Type": "application/json"}
        query = _DRY if params is None else params
        async with self._session.request(method, path, params=query, data=body, headers=headers) as response:
            answer: Json = json.loads(await response.read())
        if response.ok:
            return Answer(findings=frozenset(), stored=answer)
        if response.status == _INVALID:
            causes = answer["details"]["causes"]
            return Answer(
                findings=of_causes(causes),
                stored=None,
                text=answer["message"],
                is_unchecked=are_rules_unchecked(causes),
            )
        text = f"{response.status} {answer.get('message', '')}"
        return Answer(findings=frozenset({Finding(text, "Status")}), stored=None, text=text)


@asynccontextmanager
async def connected(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Server]:
    """Connect to the API server of a control plane as its administrator, with keep-alive connections."""
    pki = control_plane.directory / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=context)
    async with aiohttp.ClientSession(control_plane.server, connector=connector) as session:
        yield Server(session, namespace)
