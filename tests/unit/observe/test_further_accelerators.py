"""Extended resources and node labels that a user declares as accelerators and their type."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.devices import FurtherAccelerators, Translation, resource_problems
from controller.observe.quotas import Tenant, limits

NEURON = "aws.amazon.com/neuron"
SHARED = "nvidia.com/gpu.shared"
FURTHER = FurtherAccelerators(resources=(NEURON, SHARED), node_labels=("own/type", "own/other"))
DYNAMIC = Translation(further=FURTHER)


def node(allocatable: dict[str, str], **labels: str) -> Json:
    """Return a node; underscores in names of labels are slashes."""
    named = {name.replace("_", "/"): value for name, value in labels.items()}
    return {"metadata": {"name": "n", "labels": named}, "status": {"allocatable": allocatable}}


NODES: dict[str, tuple[Json, tuple[int, str]]] = {
    "a declared resource and label": (node({NEURON: "16"}, own_type="Trainium2"), (16, "TRAINIUM2")),
    "the first label that the node has": (node({NEURON: "16"}, own_other="Inferentia2"), (16, "INFERENTIA2")),
    "a known label precedes declared ones": (
        node(
            {SHARED: "4", "nvidia.com/gpu": "0"},
            own_type="X",
            **{"nvidia.com_gpu.product": "NVIDIA-L4-SHARED"},
        ),
        (4, "L4-SHARED"),
    ),
    "both resources of one node": (node({NEURON: "16", "nvidia.com/gpu": "2"}), (18, "")),
    "a node without accelerators": (node({"cpu": "8"}), (0, "")),
    "an undeclared resource": (node({"nvidia.com/mig-1g.5gb": "7"}), (0, "")),
}


@pytest.mark.parametrize(("value", "want"), NODES.values(), ids=NODES.keys())
def test_declared_accelerators_of_nodes_count(value: Json, want: tuple[int, str]) -> None:
    """The node itself is not changed."""
    before = repr(value)

    found = DYNAMIC.node(value)

    counted = accelerators_in(found["status"]["allocatable"]), product_of(found["metadata"]["labels"])
    assert counted == want
    assert repr(value) == before


def spec(*limits: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Json:
    """Return the spec of a pod whose containers have these limits."""
    return {
        "containers": [{"resources": {"limits": item}} for item in limits],
        "initContainers": [{"resources": {"limits": item}} for item in init],
    }


PODS: dict[str, tuple[Json, int]] = {
    "one container": (spec({NEURON: 4}), 4),
    "two containers, and an init container with fewer": (
        spec({NEURON: 4}, {NEURON: 1}, init=({NEURON: 2},)),
        5,
    ),
    "two declared resources": (spec({NEURON: 4, SHARED: 1}), 5),
    "a known one, too": (spec({NEURON: 4, "nvidia.com/gpu": "1"}), 5),
    "none": (spec({"cpu": "1"}), 0),
}


@pytest.mark.parametrize(("given", "want"), PODS.values(), ids=PODS.keys())
def test_declared_accelerators_of_pods_and_templates_count(given: Json, want: int) -> None:
    """They are counted as the scheduler does."""
    metadata = {"namespace": "ns", "name": "p"}
    pod = DYNAMIC.pod({"metadata": metadata, "spec": given})
    workload = DYNAMIC.workload({"metadata": metadata, "spec": {"template": {"spec": given}}})

    assert accelerators_of(pod["spec"]) == accelerators_of(workload["spec"]["template"]["spec"]) == want


def test_without_declarations_objects_are_passed_on() -> None:
    """Nothing is copied in each cycle."""
    pod = {"metadata": {"namespace": "ns", "name": "p"}, "spec": spec({NEURON: 4})}
    machine = node({NEURON: "4"}, own_type="X")

    assert Translation().pod(pod) is pod
    assert Translation().node(machine) is machine


def test_quotas_of_declared_resources_count() -> None:
    """Only declared ones are known to limit replicas."""
    tenant = Tenant(
        namespace="ns", accelerator="TRAINIUM2", pod_spec=DYNAMIC.pod({"spec": spec({NEURON: 2})})["spec"]
    )
    quota = {"metadata": {"namespace": "ns", "name": "q"}, "spec": {"hard": {f"requests.{NEURON}": "6"}}}

    declared = limits([quota], [tenant], [], frozenset(), resources=FURTHER.names)

    assert [item.accelerators for item in declared.quotas] == [6]
    assert not limits([quota], [tenant], [], frozenset()).quotas


PROBLEMS = {
    "an extended resource": (NEURON, []),
    "no domain": ("gpu", ["accelerators.resources[0]: 'gpu' must be DOMAIN/NAME"]),
    "no name": ("x.com/", ["accelerators.resources[0]: 'x.com/' must be DOMAIN/NAME"]),
    "a known one": (
        "nvidia.com/gpu",
        ["accelerators.resources[0]: 'nvidia.com/gpu' always counts as an accelerator"],
    ),
}


@pytest.mark.parametrize(("name", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_only_names_of_further_extended_resources_can_be_declared(name: str, want: list[str]) -> None:
    """A resource that always counts would count twice."""
    assert resource_problems([name]) == want
    assert resource_problems([NEURON, NEURON]) == [f"accelerators.resources[1]: {NEURON!r} is there twice"]
