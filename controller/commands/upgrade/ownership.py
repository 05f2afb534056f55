"""The label by which objects are recognized as ours, and the marks of Helm for our own chart."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json

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
    """Return a definition without our label."""
    metadata = live["metadata"]
    if not is_ours(live):
        return live
    labels = {name: value for name, value in metadata["labels"].items() if name != PART_OF}
    return live | {"metadata": metadata | {"labels": labels}}


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
