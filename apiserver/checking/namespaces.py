"""The namespace that an object is in: its own, the one that was named for all of them, or an unknown one."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import targets_of
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.paths import FieldPath


def placed(value: Json, namespace: str) -> Json:
    """Return an object with a namespace, as kubectl sets it, where the object has none of its own."""
    metadata = value.get("metadata")
    if not namespace or not isinstance(metadata, dict | None) or (metadata or {}).get("namespace"):
        return value
    return value | {"metadata": (metadata or {}) | {"namespace": namespace}}


def misplacement(own: str, namespace: str) -> str:
    """Return what kubectl says of an object whose own namespace is not the named one, or nothing."""
    if own in {"", namespace} or not namespace:
        return ""
    return (
        f'the namespace from the provided object "{own}" does not match the namespace "{namespace}". You must'
        f" pass '--namespace={own}' to perform this operation."
    )


def namespace_advice(kind: Kind, value: Json) -> Iterator[str]:
    """Yield one warning for each field of a valid object that is right in one namespace only.

    Silent where the namespace is known: then there would be an error.
    """
    if kind is not AUTOSCALING_POLICY_BINDING or value["metadata"].get("namespace"):
        return
    for below, target in targets_of(value["spec"]):
        if target["targetRef"].get("namespace"):
            path = FieldPath(("spec", *below, "targetRef", "namespace"))
            yield f"{path}: is refused unless the binding is in that namespace"
