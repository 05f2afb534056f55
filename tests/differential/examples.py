"""Objects that cause differences that few random objects cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from differential.compare import Tally, compare_with_server
from differential.generate import Case
from differential.server import Server
from differential.updates import Update, compare_updates


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """An object, and for an update also the stored object."""

    new: Json
    old: Json | None = None


def _policy(metrics: list[str]) -> Json:
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "judged"},
        "spec": {"metrics": [{"metricName": name, "targetValue": "1"} for name in metrics]},
    }


def _mixed(model: str) -> Json:
    parameters = {"decodeParms": {"alpha": "1"}, "prefillParms": {"gamma": "1"}}
    entry = {"acc": "A100", "accCount": 1, "perfParms": parameters, "maxBatchSize": 4}
    return {
        "apiVersion": "llmd.ai/v1alpha1",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "judged"},
        "spec": {"modelID": model, "modelProfile": {"accelerators": [entry]}, "accelerator": "A100"},
    }


def _named(backend: str) -> Json:
    """Return a Model; the names of its Services begin with the names of the Model and a backend."""
    worker = {"type": "server", "image": "engine", "replicas": 1, "pods": 1, "resources": {}}
    entry = {"name": backend, "type": "vLLM", "modelURI": "hf://org/model", "workers": [worker]}
    bounds = {"minReplicas": 1, "maxReplicas": 1}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "judged"},
        "spec": {"name": "judged", "backends": [entry | bounds]},
    }


EXAMPLES: Final[Mapping[str, Example]] = {
    "beyond the most items": Example(new=_policy([*(f"metric{number}" for number in range(33)), "metric32"])),
    "asked at creation": Example(old=_named("l4"), new=_named("l" * 60)),
    "forgiven by field": Example(old=_mixed("one/model"), new=_mixed("another/model")),
}
"""Examples by the name of the difference."""


async def compare_example(server: Server, kind: Kind, version: Version, example: Example) -> Tally:
    """Compare our judge with an API server on one example."""
    if example.old is not None:
        update = Update(change="example", old=example.old, new=example.new)
        return await compare_updates(server, kind, version, [[update]])
    await server.install(kind, version)
    body = json.dumps(example.new).encode()
    item = Case(version=version.name, number=0, sort="example", change="", body=body)
    return await compare_with_server(server, kind, version, [item])
