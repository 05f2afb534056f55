"""Accelerators in pods and nodes: those that always count, and those that a user declares."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.accelerators import (
    accelerators_in,
    accelerators_of,
    product_of,
    short_name,
    uncounted_resources,
)
from controller.observe.devices import DeviceTranslator, FurtherAccelerators, resource_problems
from controller.observe.quotas import Tenant, limits
from controller.sizing.catalog import ACCELERATORS, accelerator_named


@pytest.mark.parametrize(
    ("product", "want"),
    [
        ("NVIDIA-A100-PCIE-80GB", "A100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("NVIDIA-H100-SXM5-80GB", "H100"),
        ("NVIDIA-L40S-48GB", "L40S"),
        ("NVIDIA-L40S", "L40S"),
        ("AMD-MI300X-192G", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("Intel-Gaudi-2-96GB", "GAUDI-2"),
        ("nvidia-h100-80gb", "H100"),
        ("Tesla-T4", "T4"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-MIG-1G.5GB"),
        ("NVIDIA-L40S-SHARED", "L40S-SHARED"),
        ("NVIDIA-H100-80GB-HBM3-MIG-2g.20gb-SHARED", "H100-MIG-2G.20GB-SHARED"),
        ("A100", "A100"),
        ("nvidia", "NVIDIA"),
        ("", ""),
    ],
)
def test_product_names_are_normalised_to_the_accelerator_type(product: str, want: str) -> None:
    """Vendor, memory size and form factor are removed, but a part is not a whole accelerator."""
    assert short_name(product) == want


OF_GOOGLE = {
    "nvidia-tesla-t4": ("T4", "T4"),
    "nvidia-tesla-v100": ("V100", "V100"),
    "nvidia-tesla-a100": ("A100", "A100-40GB"),
    "nvidia-a100-80gb": ("A100", "A100"),
    "nvidia-l4": ("L4", "L4"),
    "nvidia-h100-80gb": ("H100", "H100"),
    "nvidia-h100-mega-80gb": ("H100", "H100"),
    "nvidia-h200-141gb": ("H200", "H200"),
    "nvidia-b200": ("B200", "B200"),
    "nvidia-gb200": ("GB200", "GB200"),
    "nvidia-rtx-pro-6000": ("RTX-PRO-6000", None),
}


@pytest.mark.parametrize(("product", "want"), OF_GOOGLE.items(), ids=OF_GOOGLE)
def test_the_labels_of_gke_are_known(product: str, want: tuple[str, str | None]) -> None:
    """`cloud.google.com/gke-accelerator`: the type, and its entry in the catalog, if it has one."""
    short, entry = want

    assert short_name(product) == short
    assert accelerator_named(product, short) is (ACCELERATORS[entry] if entry else None)


@pytest.mark.parametrize(
    ("quantity", "want"),
    [
        ("8", 8),
        (8, 8),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e3", 1000),
        ("2000m", 2),
        ("1M", 1_000_000),
        ("junk", 0),
    ],
)
def test_quantities_are_parsed_in_every_notation(quantity: str | int, want: int) -> None:
    """An unparsable quantity counts as 0, so that one such pod does not stop planning."""
    assert accelerators_in({"nvidia.com/gpu": quantity, "cpu": "7"}) == want


def test_the_most_specific_node_label_gives_the_accelerator_type() -> None:
    """The label of GPU feature discovery takes precedence over that of a cloud provider."""
    labels = {"cloud.google.com/gke-accelerator": "nvidia-l4", "nvidia.com/gpu.product": "NVIDIA-L40S"}

    assert product_of(labels) == "L40S"
    assert product_of({"karpenter.k8s.aws/instance-gpu-name": "h100"}) == "H100"
    assert product_of({"eks.amazonaws.com/instance-gpu-name": "l40s"}) == "L40S"
    assert product_of({"kubernetes.io/arch": "amd64"}) == ""


def container(count: int | str, **members: str) -> Json:
    """Return a container with a limit of some accelerators."""
    return {"resources": {"limits": {"nvidia.com/gpu": count, "cpu": "4"}}, **members}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"containers": [container(2), container("3")]}, 5, id="requests of containers are summed"
        ),
        pytest.param(
            {"containers": [container(2)], "initContainers": [container(8)]},
            8,
            id="an init container with a larger request",
        ),
        pytest.param(
            {"containers": [container(2)], "initContainers": [container(1, restartPolicy="Always")]},
            3,
            id="a sidecar is added to the other containers",
        ),
        pytest.param({"containers": [{}]}, 0, id="no accelerator"),
    ],
)
def test_the_request_of_a_pod_is_computed_from_its_containers_as_by_the_scheduler(
    spec: Json, want: int
) -> None:
    """The larger of the sum over containers and sidecars and of each init container counts."""
    assert accelerators_of(spec) == want


def asking(*names: str) -> Json:
    """Return a container with a limit of 1 of some resources."""
    return {"resources": {"limits": dict.fromkeys(names, "1"), "claims": [{"name": "one"}]}}


UNCOUNTED = {
    "a MIG device": ([asking("nvidia.com/mig-1g.5gb", "cpu")], ["nvidia.com/mig-1g.5gb"]),
    "a share": ([asking("nvidia.com/gpu.shared")], ["nvidia.com/gpu.shared"]),
    "a network device next to accelerators": ([container(1), asking("nvidia.com/hostdev")], []),
    "a Neuron device": ([asking("aws.amazon.com/neuron")], ["aws.amazon.com/neuron"]),
    "an Ascend device": ([asking("huawei.com/Ascend910")], ["huawei.com/Ascend910"]),
    "a graphics device": ([asking("gpu.intel.com/i915")], ["gpu.intel.com/i915"]),
    "a resource of nobody known": ([asking("cpu", "example.com/x")], ["example.com/x"]),
    "network devices": ([asking("rdma/hca", "vpc.amazonaws.com/efa", "x.kubernetes.io/y")], []),
    "no resources": ([{"name": "engine"}], []),
}


@pytest.mark.parametrize(("containers", "want"), UNCOUNTED.values(), ids=UNCOUNTED.keys())
def test_resources_of_accelerators_that_are_not_counted_are_named(
    containers: list[Json], want: list[str]
) -> None:
    """Such replicas would seem to fit on any node."""
    assert list(uncounted_resources({"containers": containers})) == want


NEURON = "aws.amazon.com/neuron"
SHARED = "nvidia.com/gpu.shared"
FURTHER = FurtherAccelerators(resources=(NEURON, SHARED), node_labels=("own/type", "own/other"))
DYNAMIC = DeviceTranslator(further=FURTHER)


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

    assert DeviceTranslator().pod(pod) is pod
    assert DeviceTranslator().node(machine) is machine


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
