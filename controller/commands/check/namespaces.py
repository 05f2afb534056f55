"""The namespace of an object: its own, the given one, or unknown."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import targets_of
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.paths import FieldPath


def namespace_argument(text: str) -> str:
    """Return a namespace given on the command line. Raises ArgumentTypeError."""
    for wrong in metadata_errors({"name": "any", "namespace": text}):
        raise argparse.ArgumentTypeError(wrong.error.body)
    return text


def with_namespace(value: Json, namespace: str) -> Json:
    """Return an object in the given namespace, as kubectl sets it, unless it has one of its own."""
    metadata = value.get("metadata")
    if not namespace or not isinstance(metadata, dict | None) or (metadata or {}).get("namespace"):
        return value
    return value | {"metadata": (metadata or {}) | {"namespace": namespace}}


def misplacement(own: str, namespace: str) -> str:
    """Return kubectl's error for an object in another than the given namespace; empty if there is none."""
    if own in {"", namespace} or not namespace:
        return ""
    return (
        f'the namespace from the provided object "{own}" does not match the namespace "{namespace}". You must'
        f" pass '--namespace={own}' to perform this operation."
    )


def namespace_advice(kind: Kind, value: Json) -> Iterator[str]:
    """Yield a warning for each field of a valid object that is only valid in one namespace.

    No warning is given if the namespace is known: a mismatch is then an error.
    """
    if kind is not AUTOSCALING_POLICY_BINDING or value["metadata"].get("namespace"):
        return
    for below, target in targets_of(value["spec"]):
        if target["targetRef"].get("namespace"):
            path = FieldPath(("spec", *below, "targetRef", "namespace"))
            yield f"{path}: is refused unless the binding is in that namespace"
