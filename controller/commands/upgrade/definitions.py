"""The definition of a kind at each stage of a migration, and whose it is: pure functions on raw JSON."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.settings_names import INSTALLATION
from apiserver.schema.json import Json, JsonValue, same, without
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest

PART_OF: Final = "app.kubernetes.io/part-of"
"""The label that names the application of an object."""
OURS: Final = "stowplan"
"""Its value on our objects."""

HELM_RELEASE: Final = "meta.helm.sh/release-name"
"""The annotation of objects installed by a Helm release."""
PEOPLE: Final = ("kubectl", "stowplan", "kube-apiserver", "before-first-apply")
"""Prefixes of field managers that write only when a person asks for it, or the API server itself."""

_POLICY: Final = "helm.sh/resource-policy"
_MARKS: Final = ("meta.helm.sh/", _POLICY, "cert-manager.io/inject-ca-from")
"""Prefixes of the annotations from Helm and from our chart."""
_MANAGED_BY: Final = ("app.kubernetes.io/managed-by", "Helm")


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
    wanted = crd_manifest(kind)
    for version in wanted["spec"]["versions"]:
        version["storage"] = version["name"] == storage
    if kind.has_conversion:
        client = wanted["spec"]["conversion"]["webhook"]["clientConfig"]
        client["service"]["namespace"] = namespace
        if ca_bundle:
            client["caBundle"] = ca_bundle
    return _over(live, wanted)


def withdrawn_definition(kind: Kind, live: Json) -> Json:
    """Return the definition to leave: only the oldest version, with every shape, and without our label.

    Somebody who deletes all objects with our label must not delete it. Marks of our chart go, too, so that
    another run does not take it for one of another chart.
    """
    wanted = crd_manifest(kind)
    oldest = wanted["spec"]["versions"][0]
    for name in ("deprecated", "deprecationWarning"):
        oldest.pop(name, None)
    wanted["spec"] |= {"versions": [oldest | {"storage": True}], "conversion": {"strategy": "None"}}
    return without_label(without_our_chart(live)) | {"spec": wanted["spec"]}


def matches(live: Json | None, wanted: Json) -> bool:
    """Tell whether a live definition matches the wanted one, apart from what the server adds."""
    return live is not None and is_ours(live) and _specifies(live["spec"], wanted["spec"])


def _specifies(spec: Json, asked: Json) -> bool:
    return _equal(spec["versions"], asked["versions"]) and all(
        _holds(spec.get(name), asked[name]) for name in ("names", "conversion") if name in asked
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


def _over(live: Json | None, wanted: Json) -> Json:
    """Replace the live spec by the wanted one; the resource version that was read guards the write."""
    if live is None:
        return wanted
    metadata = live["metadata"]
    labels = (metadata.get("labels") or {}) | wanted["metadata"]["labels"]
    return live | {"metadata": metadata | {"labels": labels}, "spec": wanted["spec"]}


def _versions(live: Json | None) -> list[Json]:
    return list(((live or {}).get("spec") or {}).get("versions") or [])


def _holds(live: JsonValue, wanted: JsonValue) -> bool:
    if wanted == []:
        return not live  # the server omits an empty list
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _equal(live, wanted)
    return all(_holds(live.get(name), item) for name, item in wanted.items())


def _equal(one: JsonValue, other: JsonValue) -> bool:
    return same(_numbers_alike(one), _numbers_alike(other))


def _numbers_alike(value: JsonValue) -> JsonValue:
    """Convert every number to a double, as the server does."""
    if isinstance(value, dict):
        return {name: _numbers_alike(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers_alike(item) for item in value]
    return float(value) if type(value) is int else value
