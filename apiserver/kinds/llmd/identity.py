"""The identity of a variant, and the scale target that is implied if none is set."""

from __future__ import annotations

import re
from typing import Final

from apiserver.schema.json import Json, JsonValue, as_list, as_object

ACCELERATOR_LABEL: Final = "inference.optimization/acceleratorName"
"""The label with which every release names the accelerator in use."""

PLANNED: Final = (
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
)
"""The groups and kinds of the scale targets that are planned."""

MOST_COST: Final = 10**9
"""The cost of one replica above which a variant is not planned."""

UNKNOWN: Final = "unknown"
"""The placeholder for a required name that is unknown."""

_NOT_IN_AN_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9]+", re.ASCII)


def variant_identifier(spec: Json) -> str:
    """Return the identifier of a variant in the legacy shape: model, accelerator and count."""
    return f"{spec.get('modelID')}-{spec.get('accelerator')}-{spec.get('acceleratorCount')}"


def identifier_of(model: str, accelerator: str, count: int) -> str:
    """Return the identifier of a variant, with characters that the legacy shape forbids removed."""
    token = _NOT_IN_AN_IDENTIFIER.sub("", accelerator) or UNKNOWN
    return f"{model.replace(chr(10), ' ')}-{token}-{count}"


def label_of(value: Json) -> str | None:
    """Return the accelerator named by an object's label, or None."""
    label = as_object(as_object(value.get("metadata")).get("labels")).get(ACCELERATOR_LABEL)
    return label if isinstance(label, str) and label else None


def implied_target(value: Json) -> Json:
    """Return the scale target of an object that does not name one.

    It is the controlling owner if that is a Deployment, since earlier controllers set one; otherwise the
    Deployment with the name of the object, where those controllers looked.
    """
    metadata = as_object(value.get("metadata"))
    names = [owner.get("name") for owner in as_list(metadata.get("ownerReferences")) if _is_deployment(owner)]
    name = next((name for name in names if isinstance(name, str)), metadata.get("name", ""))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _is_deployment(owner: JsonValue) -> bool:
    controls = isinstance(owner, dict) and owner.get("controller") is True
    return controls and owner.get("kind") == "Deployment"


def names_deployment(target: Json) -> bool:
    """Tell whether a scale target reference names an apps Deployment; `apiVersion` defaults to that group."""
    return _group_kind(target) == ("apps", "Deployment")


def is_planned(target: Json) -> bool:
    """Tell whether a scale target reference names a kind that is planned."""
    return _group_kind(target) in PLANNED


def _group_kind(target: Json) -> tuple[str, str]:
    """Return the group and kind of a reference. The group defaults to apps."""
    return str(target.get("apiVersion") or "apps/v1").rpartition("/")[0], str(target.get("kind"))
