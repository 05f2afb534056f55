"""The definition of a kind at each stage of a migration, whose it is, and how it is written and applied.

A definition takes effect a moment after it was written, and not at the same time on several API servers.
Nothing may be stored in a version that one of them cannot read yet.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, Forbidden, NotFound
from apiserver.cluster.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from apiserver.kinds.registry import DEFINED
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.schema.json import Json, JsonValue, same, without
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest
from controller.commands.upgrade.calls import (
    CONFLICT_PAUSES_SECONDS,
    Pace,
    StoppedError,
    change_all,
    get_if_present,
    resource_of,
    retry,
    wait_out,
)

PART_OF: Final = "app.kubernetes.io/part-of"
"""The label that names the application of an object."""
OURS: Final = "stowplan"
"""Its value on our objects."""

HELM_RELEASE: Final = "meta.helm.sh/release-name"
"""The annotation of objects installed by a Helm release."""
PEOPLE: Final = ("kubectl", "stowplan", "kube-apiserver", "before-first-apply")
"""Prefixes of field managers that write only when a person asks for it, or the API server itself."""

KINDS: Final = {kind.crd_name: kind for kind in DEFINED}
"""Our kinds by the names of their definitions."""
ENDPOINT_SLICES: Final = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice"
)

_POLICY: Final = "helm.sh/resource-policy"
_MARKS: Final = ("meta.helm.sh/", _POLICY, "cert-manager.io/inject-ca-from")
"""Prefixes of the annotations from Helm and from our chart."""
_MANAGED_BY: Final = ("app.kubernetes.io/managed-by", "Helm")

_PATIENCE_SECONDS: Final = 60.0
"""Time in which a written definition must take effect."""
_SETTLE_SECONDS: Final = 0.5
_SETTLE_MANY_SECONDS: Final = 5.0
"""The time that several API servers may differ, in seconds; they use the same for a new definition."""


def is_ours(live: Json) -> bool:
    """Tell whether an object has our label."""
    return (live["metadata"].get("labels") or {}).get(PART_OF) == OURS


def without_label(live: Json) -> Json:
    """Return an object without our label."""
    if not is_ours(live):
        return live
    return live | {"metadata": live["metadata"] | {"labels": without(live["metadata"]["labels"], (PART_OF,))}}


def managers_of_our_chart(live: Json) -> set[str]:
    """Return the managers by which Helm installed our own chart; empty for the chart of others.

    Our chart contains our label, and the annotation by which Helm keeps the definition. A definition of
    another chart has the label after an upgrade, but from our client; a chart made of our manifests lacks the
    annotation.
    """
    annotations = live["metadata"].get("annotations") or {}
    if HELM_RELEASE not in annotations or annotations.get(_POLICY) != "keep" or not is_ours(live):
        return set()
    entries = live["metadata"].get("managedFields") or []
    writers = {str(entry.get("manager", "")) for entry in entries if _is_of_our_chart(entry)}
    return {manager for manager in writers if not manager.startswith(PEOPLE)}


def without_our_chart(live: Json) -> Json:
    """Return a definition of our own chart without marks and field ownership of Helm; others unchanged.

    A later uninstallation by Helm keeps it all the same: Helm reads the annotation in the release's manifest.
    """
    managers = managers_of_our_chart(live)
    if not managers:
        return live
    metadata = live["metadata"]
    entries = [entry for entry in metadata["managedFields"] if entry.get("manager") not in managers]
    labels = {name: value for name, value in metadata["labels"].items() if (name, value) != _MANAGED_BY}
    annotations = {
        name: value for name, value in metadata["annotations"].items() if not name.startswith(_MARKS)
    }
    changed = {"managedFields": entries, "labels": labels, "annotations": annotations}
    return live | {"metadata": metadata | changed}


def _is_of_our_chart(entry: Json) -> bool:
    metadata = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
    labels, annotations = metadata.get("f:labels") or {}, metadata.get("f:annotations") or {}
    return f"f:{PART_OF}" in labels and f"f:{_POLICY}" in annotations


def transitional_definition(
    kind: Kind, live: Json | None, *, storage: str, ca_bundle: str, namespace: str = INSTALLATION
) -> Json:
    """Return the definition with all our versions, with `storage` as the storage version.

    The conversion webhook and its caBundle are set in the same write that serves a second version, since
    otherwise every read of that version would fail in between. The converter runs in `namespace`. Metadata
    written by others is kept.
    """
    manifest = crd_manifest(kind)
    for version in manifest["spec"]["versions"]:
        version["storage"] = version["name"] == storage
    if kind.has_conversion:
        client = manifest["spec"]["conversion"]["webhook"]["clientConfig"]
        client["service"]["namespace"] = namespace
        if ca_bundle:
            client["caBundle"] = ca_bundle
    return _over(live, manifest)


def withdrawn_definition(kind: Kind, live: Json) -> Json:
    """Return the definition to leave: only the oldest version, with every shape, and without our label.

    Somebody who deletes all objects with our label must not delete it. Marks of our chart go, too, so that
    another run does not take it for one of another chart.
    """
    manifest = crd_manifest(kind)
    oldest = manifest["spec"]["versions"][0]
    for name in ("deprecated", "deprecationWarning"):
        oldest.pop(name, None)
    manifest["spec"] |= {"versions": [oldest | {"storage": True}], "conversion": {"strategy": "None"}}
    return without_label(without_our_chart(live)) | {"spec": manifest["spec"]}


def matches(live: Json | None, manifest: Json) -> bool:
    """Tell whether a live definition matches the wanted one, apart from what the server adds."""
    return live is not None and is_ours(live) and _specifies(live["spec"], manifest["spec"])


def _specifies(spec: Json, specified: Json) -> bool:
    return _equal(spec["versions"], specified["versions"]) and all(
        _holds(spec.get(name), specified[name]) for name in ("names", "conversion") if name in specified
    )


def is_given_back(kind: Kind, live: Json) -> bool:
    """Tell whether objects can be downgraded under a definition: it prunes none of their fields.

    It is ours, or the one that a downgrade leaves.
    """
    return is_ours_still(kind, live) or _specifies(live["spec"], withdrawn_definition(kind, live)["spec"])


def is_ours_still(kind: Kind, live: Json) -> bool:
    """Tell whether a definition is ours, and is not given back to an earlier release.

    An earlier version of this program left our label on those.
    """
    is_old = kind.has_conversion and served_versions(live) == (kind.versions[0].name,)
    return is_ours(live) and not is_old


def served_versions(live: Json | None) -> tuple[str, ...]:
    """Return the names of the served versions, in the order of the definition."""
    return tuple(version["name"] for version in _versions(live) if version["served"])


def storage_version(live: Json | None) -> str:
    """Return the name of the storage version; empty without a definition."""
    return next((version["name"] for version in _versions(live) if version["storage"]), "")


def stored_versions(live: Json | None) -> tuple[str, ...]:
    """Return every version in which objects may still be stored."""
    return tuple(((live or {}).get("status") or {}).get("storedVersions") or ())


def condition(live: Json, name: str) -> str:
    """Return the status of a condition of the definition; empty if it does not exist."""
    conditions = (live.get("status") or {}).get("conditions") or []
    return next((str(item["status"]) for item in conditions if item["type"] == name), "")


def _over(live: Json | None, manifest: Json) -> Json:
    """Replace the live spec by the wanted one; the resource version that was read guards the write."""
    if live is None:
        return manifest
    metadata = live["metadata"]
    labels = (metadata.get("labels") or {}) | manifest["metadata"]["labels"]
    return live | {"metadata": metadata | {"labels": labels}, "spec": manifest["spec"]}


def _versions(live: Json | None) -> list[Json]:
    return list(((live or {}).get("spec") or {}).get("versions") or [])


def _holds(live: JsonValue, manifest: JsonValue) -> bool:
    if manifest == []:
        return not live  # the server omits an empty list
    if not isinstance(live, dict) or not isinstance(manifest, dict):
        return _equal(live, manifest)
    return all(_holds(live.get(name), item) for name, item in manifest.items())


def _equal(one: JsonValue, other: JsonValue) -> bool:
    return same(_numbers_alike(one), _numbers_alike(other))


def _numbers_alike(value: JsonValue) -> JsonValue:
    """Convert every number to a double, as the server does."""
    if isinstance(value, dict):
        return {name: _numbers_alike(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers_alike(item) for item in value]
    return float(value) if type(value) is int else value


async def read_definition(cluster: Cluster, kind: Kind) -> Json | None:
    """Return the current definition of a kind, or None if it is not installed."""
    return await get_if_present(cluster, CUSTOM_RESOURCE_DEFINITIONS, kind.crd_name)


async def write_definition(
    cluster: Cluster, kind: Kind, change: Callable[[Json | None], Json | None], *, subresource: str = ""
) -> None:
    """Write the changed definition over the current one, or create it; read it again after other writes.

    Nothing is written if `change` returns the same or None. Raises StoppedError if the other writes never
    stop.
    """

    async def attempt() -> None:
        live = await read_definition(cluster, kind)
        manifest = change(live)
        if manifest is None or manifest == live:
            return
        if live is None:
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
        else:
            await cluster.replace(CUSTOM_RESOURCE_DEFINITIONS, manifest, subresource=subresource or None)

    try:
        await retry(attempt, (Conflict, NotFound), CONFLICT_PAUSES_SECONDS)
    except (Conflict, NotFound) as error:
        raise StoppedError(f"{kind.crd_name} is changed continuously; run this command again") from error


async def disown(cluster: Cluster, kind: Kind, *, version: str, served: str, pace: Pace) -> int:
    """Remove managedFields entries of a version that will no longer be served; return from how many objects.

    The API server cannot read an entry of such a version, and erases all entries of the object at its next
    write. `served` is a version in which to write. Raises StoppedError and ClusterError.
    """
    resource, left = resource_of(kind, served), f"{kind.group}/{version}"

    def entries(item: Json) -> list[Json]:
        return [it for it in item["metadata"].get("managedFields") or [] if it.get("apiVersion") != left]

    def is_due(item: Json) -> bool:
        return len(entries(item)) < len(item["metadata"].get("managedFields") or [])

    async def write(item: Json) -> Json:
        metadata = item["metadata"] | {"managedFields": entries(item)}
        return await cluster.replace(resource, item | {"metadata": metadata})

    return await change_all(cluster, resource, is_due, write, pace)


async def until_served(cluster: Cluster, kind: Kind, versions: tuple[str, ...]) -> None:
    """Wait until exactly these versions are served. Raises StoppedError after a minute."""

    async def remainder() -> str:
        live = await read_definition(cluster, kind)
        is_established = live is not None and condition(live, "Established") == "True"
        if is_established and served_versions(live) == versions:
            names = {version.name for version in kind.versions}
            if {name for name in names if await _discover(cluster, kind, name) is not None} == set(versions):
                return ""
        return f"{kind.crd_name} does not serve {', '.join(versions)}"

    await wait_out(remainder, within_seconds=_PATIENCE_SECONDS)
    if kind.has_conversion:
        await settle(cluster)


async def until_stored(cluster: Cluster, kind: Kind, version: str) -> None:
    """Wait until objects are stored in a version. Raises StoppedError after a minute."""

    async def remainder() -> str:
        resource = await _discover(cluster, kind, version) or {}
        is_stored = resource.get("storageVersionHash") == storage_hash(kind, version)
        return "" if is_stored else f"{kind.crd_name} is not stored in {version}"

    await wait_out(remainder, within_seconds=_PATIENCE_SECONDS)
    await settle(cluster)


def storage_hash(kind: Kind, version: str) -> str:
    """Return the hash of a storage version, as in discovery.

    Source: `k8s.io/apiserver/pkg/endpoints/discovery`.
    """
    digest = hashlib.sha256(f"{kind.group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


async def settle(cluster: Cluster) -> None:
    """Wait for the request handlers, and other API servers, which may lag behind discovery."""
    try:
        listed = await cluster.list(
            ENDPOINT_SLICES, namespace="default", label_selector="kubernetes.io/service-name=kubernetes"
        )
        servers = sum(len(item.get("endpoints") or []) for item in listed["items"])
    except Forbidden:
        servers = 2  # unknown: assume several
    await asyncio.sleep(_SETTLE_MANY_SECONDS if servers > 1 else _SETTLE_SECONDS)


async def _discover(cluster: Cluster, kind: Kind, version: str) -> Json | None:
    try:
        document = await cluster.get_path(f"/apis/{kind.group}/{version}")
    except NotFound:
        return None
    return next((item for item in document.get("resources") or [] if item["name"] == kind.plural), None)
