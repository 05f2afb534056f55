"""`stowplan migrate` in tests: its result, and objects of both shapes."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from controller.commands.migrate.migration import Side, migrate
from controller.commands.migrate.variants import HPA
from support.manifests import autoscaler

OUR_GROUP: Final = "registry.volcano.sh"
RELEASED_GROUP: Final = "workload.serving.volcano.sh"


def migrated(*objects: Json, to: str = "released", created: str = HPA) -> tuple[list[Json], list[str]]:
    """Return all objects after migration, and the notes as `path: text`, losses with a `-` before."""
    results = migrate(objects, Side(to), created)
    values = [
        value
        for place, item in enumerate(objects)
        for value in (results[place].objects if place in results else (item,))
    ]
    notes = [note for _, result in sorted(results.items()) for note in result.notes]
    return values, [f"{'- ' if note.is_loss else ''}{note.path}: {note.text}" for note in notes]


def manifest(group: str, kind: str, spec: Json, name: str = "llama", **metadata: object) -> Json:
    """Return an object of a `v1alpha1`."""
    own = {"name": name, **metadata}
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": own, "spec": spec}


def policy(name: str = "llama", *, group: str = OUR_GROUP, **spec: object) -> Json:
    """Return a policy with one metric, named as its group does."""
    member = "metricName" if group == OUR_GROUP else "name"
    metrics = [{member: "vllm:num_requests_waiting", "targetValue": 5}]
    return manifest(group, "AutoscalingPolicy", {"metrics": metrics, **spec}, name)


def target(name: str = "llama", **more: object) -> Json:
    """Return the target of a binding."""
    reference = {"apiVersion": f"{RELEASED_GROUP}/v1alpha1", "kind": "ModelServing", "name": name}
    return {"targetRef": reference, **more}


def binding(name: str = "llama", to: str = "llama", *, of: Json | None = None, **metadata: object) -> Json:
    """Return a binding of the policy `to` to one target."""
    scaling = {"target": of or target(), "minReplicas": 1, "maxReplicas": 4}
    spec = {"policyRef": {"name": to}, "scalingConfiguration": scaling}
    return manifest(OUR_GROUP, "AutoscalingPolicyBinding", spec, name, **metadata)


def backend(name: str = "l4", **fields: object) -> Json:
    """Return a backend of fixed replicas."""
    plain = {"name": name, "type": "vLLM", "modelURI": "hf://a/b", "minReplicas": 2, "maxReplicas": 2}
    return plain | {"workers": [{"image": "vllm"}]} | fields


def hpa(name: str = "llama", *, least: int = 1, most: int = 10, **metadata: object) -> Json:
    """Return a HorizontalPodAutoscaler that follows the variant `llama`, whatever its own name is."""
    value = autoscaler("llama", least=least, most=most)
    value["metadata"] = {"name": name, **metadata}
    return value
