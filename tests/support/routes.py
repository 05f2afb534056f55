"""ModelRoutes and ModelServers for tests, with their defaults."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from apiserver.schema.json import Json
from controller.gateways.inputs import InstalledDefinitions
from controller.gateways.translation import Translation, translate
from support.models import errors_of

NETWORKING = "networking.volcano.sh/v1alpha1"
GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "inference", "namespace": "infra"}


def server(name: str = "l4", /, *, annotations: Json | None = None, **members: Any) -> Json:
    """Return a ModelServer of vLLM engines. Raises AssertionError if it is invalid."""
    spec = {
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": name}},
        "workloadPort": {"port": 8000},
    }
    return _valid("ModelServer", name, annotations, spec | members)


def rule(*targets: str, **match: Any) -> Json:
    """Return a rule that distributes requests evenly."""
    found: Json = {"targetModels": [{"modelServerName": name} for name in targets or ("l4",)]}
    return found | ({"modelMatch": match} if match else {})


def route(*rules: Json, name: str = "chat", annotations: Json | None = None, **members: Any) -> Json:
    """Return a ModelRoute for the model `chat`. Raises AssertionError if it is invalid."""
    spec = {"modelName": "chat", "rules": list(rules) or [rule()]} | members
    return _valid("ModelRoute", name, annotations, {key: item for key, item in spec.items() if item != ""})


def translated(value: Json, *servers: Json, installed: InstalledDefinitions | None = None) -> Translation:
    """Return the translation of a route for one Gateway, with a default server if none is given."""
    known: Iterable[Json] = servers or (server(),)
    by_name = {item["metadata"]["name"]: item for item in known}
    return translate(value, by_name, [GATEWAY], installed or InstalledDefinitions())


def http_rules(translation: Translation) -> list[Json]:
    """Return the rules of all HTTPRoutes."""
    return [
        item for made in translation.objects if made["kind"] == "HTTPRoute" for item in made["spec"]["rules"]
    ]


def said(translation: Translation) -> list[str]:
    """Return the notes as text."""
    return [str(note) for note in translation.notes]


def _valid(kind: str, name: str, annotations: Json | None, spec: Json) -> Json:
    metadata: Json = {"name": name} | ({"annotations": annotations} if annotations else {})
    value = copy.deepcopy({"apiVersion": NETWORKING, "kind": kind, "metadata": metadata, "spec": spec})
    assert errors_of(value) == []
    return value
