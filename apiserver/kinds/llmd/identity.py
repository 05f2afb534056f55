"""What identifies a variant, and the workload that is meant where none is named."""

from __future__ import annotations

import re
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import as_list, as_object, plain

ACCELERATOR_LABEL: Final = "inference.optimization/acceleratorName"
"""The label by which every release names the accelerator in use."""

PLANNED: Final = (
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
)
"""Group and kind of the scale targets that are planned for."""

PLANNED_IN_WORDS: Final = "Deployments and StatefulSets of apps, and LeaderWorkerSets, are planned for"
"""The same for people."""

UNKNOWN: Final = "unknown"
"""Stands where a shape wants a name and nobody knows it."""

_NOT_IN_AN_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9]+", re.ASCII)


def variant_identifier(spec: Json) -> str:
    """Return the identifier that the legacy shape gives a variant: model, accelerator and count."""
    model, accelerator = plain(spec.get("modelID")), plain(spec.get("accelerator"))
    return f"{model}-{accelerator}-{plain(spec.get('acceleratorCount'))}"


def identifier_of(model: str, accelerator: str, count: int) -> str:
    """Return the identifier of a variant, with what the legacy shape refuses taken out of its parts."""
    token = _NOT_IN_AN_IDENTIFIER.sub("", accelerator) or UNKNOWN
    return f"{model.replace(chr(10), ' ')}-{token}-{count}"


def label_of(value: Json) -> str | None:
    """Return the accelerator that an object's label names."""
    label = plain(as_object(as_object(value.get("metadata")).get("labels")).get(ACCELERATOR_LABEL))
    return label if isinstance(label, str) and label else None


def implied_target(value: Json) -> Json:
    """Return the scale target of an object that names none.

    Its controlling owner if that is a Deployment, since earlier controllers set one; else the Deployment of
    its own name, which is where they looked.
    """
    metadata = as_object(value.get("metadata"))
    owners = as_list(metadata["ownerReferences"]) if "ownerReferences" in metadata else []
    names = [owner.get("name") for owner in owners if _is_deployment(owner)]
    name = next((name for name in names if isinstance(name, str)), metadata.get("name", ""))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _is_deployment(owner: JsonValue) -> bool:
    controls = isinstance(owner, dict) and owner.get("controller") is True
    return controls and owner.get("kind") == "Deployment"


def names_deployment(target: Json) -> bool:
    """Tell whether a scale target reference names an apps Deployment; without an apiVersion it does."""
    return _group_kind(target) == ("apps", "Deployment")


def is_planned(target: Json) -> bool:
    """Tell whether a scale target reference names a kind that is planned for."""
    return _group_kind(target) in PLANNED


def _group_kind(target: Json) -> tuple[str, str]:
    """Return group and kind; without an apiVersion the group is apps."""
    return str(target.get("apiVersion") or "apps/v1").rpartition("/")[0], str(target.get("kind"))
