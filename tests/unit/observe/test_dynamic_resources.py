"""Devices and claims of Dynamic Resource Allocation, counted as accelerators of nodes, pods and templates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.devices import DeviceTranslator, NodeDevices, devices_in
from controller.observe.inventory import inventory
from controller.observe.targets import TargetKey, TargetKind, UnplannableTargetError, target_of
from controller.projections import Projection

NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"


def device(name: str, **attributes: str) -> Json:
    """Return a device with string attributes."""
    return {"name": name, "attributes": {key: {"string": text} for key, text in attributes.items()}}


def gpu(name: str, product: str = "NVIDIA H100 80GB HBM3", kind: str = "gpu") -> Json:
    """Return a device as NVIDIA's driver publishes it."""
    return device(name, type=kind, productName=product) | {"capacity": {"memory": {"value": "80Gi"}}}


def a_slice(*devices: Json, driver: str = NVIDIA, node: str | None = "n1", **pool: Any) -> Json:
    """Return a ResourceSlice."""
    spec = {"driver": driver, "pool": {"name": node or "p", "generation": 1, "resourceSliceCount": 1} | pool}
    where = {"nodeName": node} if node else {"allNodes": True}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": spec | where | {"devices": list(devices)}}


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param([a_slice(gpu("a"), gpu("b"))], {"n1": ("H100", 2)}, id="whole devices of a node"),
        pytest.param(
            [a_slice(gpu("a"), gpu("m", kind="mig"))], {"n1": ("H100", 1)}, id="partitions are not counted"
        ),
        pytest.param(
            [
                a_slice(
                    device("a", type="amdgpu", productName="AMD_Instinct_MI300X_OAM"),
                    device("b", type="amdgpu-partition", productName="AMD_Instinct_MI300X_OAM"),
                    driver=AMD,
                )
            ],
            {"n1": ("MI300X", 1)},
            id="AMD",
        ),
        pytest.param(
            [a_slice(device("a", **{f"{INTEL}/model": "Max 1550"}), driver=INTEL)],
            {"n1": ("MAX-1550", 1)},
            id="Intel, with the attribute's full name",
        ),
        pytest.param([a_slice(gpu("a"), driver="dra.net")], {}, id="devices that are no accelerators"),
        pytest.param([a_slice(gpu("a"), node=None)], {}, id="devices that are not local to a node"),
        pytest.param(
            [a_slice(gpu("a"), gpu("b") | {"taints": [{"key": "broken", "effect": "NoExecute"}]})],
            {"n1": ("H100", 1)},
            id="a tainted device is not counted",
        ),
        pytest.param(
            [a_slice(gpu("a")), a_slice(gpu("a"), gpu("b"), generation=2)],
            {"n1": ("H100", 2)},
            id="the newest generation of a pool",
        ),
        pytest.param(
            [a_slice(gpu("a"), gpu("b")), a_slice(gpu("a"), generation=2, resourceSliceCount=2)],
            {"n1": ("H100", 2)},
            id="the previous generation while the newest is incomplete",
        ),
        pytest.param(
            [a_slice(gpu("a"), gpu("b"), gpu("c", product="NVIDIA L4"))],
            {"n1": ("H100", 2)},
            id="the more frequent one of two types",
        ),
    ],
)
def test_resource_slices_give_the_accelerators_of_each_node(
    slices: list[Json], want: dict[str, tuple[str, int]]
) -> None:
    """The result is the same for complete slices and for their cached projections."""
    expected = {node: NodeDevices(product=product, count=count) for node, (product, count) in want.items()}
    projection = Projection()

    assert devices_in(slices).by_node == expected
    assert devices_in([projection.resource_slice(copy.deepcopy(item)) for item in slices]).by_node == expected


def node(**allocatable: str) -> Json:
    """Return a ready node."""
    return {
        "metadata": {"name": "n1", "labels": {}},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.mark.parametrize(
    ("allocatable", "want"),
    [
        pytest.param({"cpu": "8"}, 2, id="devices only"),
        pytest.param({"nvidia.com/gpu": "2"}, 2, id="a device plugin reports the same devices"),
        pytest.param({"nvidia.com/gpu": "1"}, 2, id="a device plugin reports some of the devices"),
    ],
)
def test_devices_of_a_node_are_counted_once(allocatable: dict[str, str], want: int) -> None:
    """The devices also give the accelerator type if no label does."""
    translation = DeviceTranslator(slices=[a_slice(gpu("a"), gpu("b"))])

    (found,) = inventory([translation.node(node(**allocatable))], [], frozenset())

    assert (found.accelerators_allocatable, found.accelerator) == (want, "H100")


def request(count: int = 1, *, device_class: str = NVIDIA, **members: object) -> Json:
    """Return a request for devices."""
    return {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count, **members}}


def claim(name: str, *requests: Json, held: list[str] | None = None) -> Json:
    """Return a ResourceClaim, allocated if `held` lists devices."""
    found: Json = {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"devices": {"requests": list(requests)}},
    }
    if held is not None:
        results = [{"request": "gpu", "driver": NVIDIA, "pool": "n1", "device": item} for item in held]
        found["status"] = {"allocation": {"devices": {"results": results}}}
    return found


def template(name: str, *requests: Json) -> Json:
    """Return a ResourceClaimTemplate."""
    return {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def pod(name: str, *, claims: list[Json], made: dict[str, str] | None = None) -> Json:
    """Return a pod with claims; `made` maps their names to generated ResourceClaims."""
    statuses = [{"name": key, "resourceClaimName": text} for key, text in (made or {}).items()]
    return {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"nodeName": "n1", "containers": [{}], "resourceClaims": claims},
        "status": {"phase": "Running", "resourceClaimStatuses": statuses},
    }


OWN = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
SHARED = [{"name": "gpu", "resourceClaimName": "shared"}]
SLICES = [a_slice(*(gpu(name) for name in "abcd"))]
CLASSES = [
    {
        "metadata": {"name": "whole"},
        "spec": {
            "selectors": [
                {
                    "cel": {
                        "expression": "device.driver == 'gpu.nvidia.com' &&"
                        " device.attributes['gpu.nvidia.com'].type == 'gpu'"
                    }
                }
            ]
        },
    },
    {
        "metadata": {"name": "part"},
        "spec": {
            "selectors": [
                {
                    "cel": {
                        "expression": 'device.driver == "gpu.nvidia.com" &&'
                        ' device.attributes["gpu.nvidia.com"].type == "mig"'
                    }
                }
            ]
        },
    },
]


@pytest.mark.parametrize(
    ("claims", "pods", "want"),
    [
        pytest.param(
            [claim("p-gpu", request(2), held=["a", "b"])],
            [pod("p", claims=OWN, made={"gpu": "p-gpu"})],
            [2],
            id="an allocated claim",
        ),
        pytest.param(
            [claim("p-gpu", request(2))],
            [pod("p", claims=OWN, made={"gpu": "p-gpu"})],
            [2],
            id="a claim that is not allocated yet",
        ),
        pytest.param([], [pod("p", claims=OWN)], [2], id="a claim that is not created yet"),
        pytest.param(
            [claim("shared", request(2), held=["a", "b"])],
            [pod("p", claims=SHARED), pod("q", claims=SHARED)],
            [2, 0],
            id="a claim that pods share is counted once",
        ),
        pytest.param(
            [claim("shared", request(1), held=["unknown"])],
            [pod("p", claims=SHARED)],
            [0],
            id="an allocated device that is no accelerator",
        ),
        pytest.param([], [pod("p", claims=SHARED)], [0], id="a claim that does not exist"),
        pytest.param(
            [claim("shared", request(allocationMode="All"), held=["a", "b", "c", "d"])],
            [pod("p", claims=SHARED)],
            [4],
            id="all devices of a node, after allocation",
        ),
    ],
)
def test_claims_give_the_accelerators_of_pods(claims: list[Json], pods: list[Json], want: list[int]) -> None:
    """The result is the same for complete objects and for their cached projections."""
    projection = Projection()
    kept = [projection.resource_claim(copy.deepcopy(item)) for item in claims]
    small = [projection.pod(copy.deepcopy(item)) for item in pods]
    for given, asked in ((claims, pods), (kept, small)):
        translation = DeviceTranslator(slices=SLICES, claims=given, templates=[template("two", request(2))])

        assert [accelerators_of(translation.pod(item)["spec"]) for item in asked] == want


KEY = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")


def workload(*entries: Json) -> Json:
    """Return a Deployment whose pods have claims."""
    spec = {"containers": [{"name": "engine"}], "resourceClaims": list(entries)}
    return {"metadata": {"namespace": "ns", "name": "chat"}, "spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        pytest.param([request(2)], 2, id="by the name of the device class"),
        pytest.param([request(2, device_class="whole")], 2, id="by a user-defined device class"),
        pytest.param([request(2, device_class="part")], 0, id="partitions of devices"),
        pytest.param([request(2, device_class="unknown")], 0, id="an unknown device class"),
        pytest.param([request(2), request(1, device_class="rdma")], 2, id="a network card in addition"),
        pytest.param([request(2, adminAccess=True)], 0, id="admin access for monitoring only"),
        pytest.param([{"name": "gpu", "deviceClassName": NVIDIA}], 1, id="the format of v1beta1"),
        pytest.param(
            [{"name": "gpu", "firstAvailable": [{"deviceClassName": NVIDIA, "count": 2}] * 2}],
            2,
            id="alternatives with equal counts",
        ),
        pytest.param([request(allocationMode="All")], "all devices of a node", id="all devices of a node"),
        pytest.param(
            [
                {
                    "name": "gpu",
                    "firstAvailable": [
                        {"deviceClassName": NVIDIA, "count": 2},
                        {"deviceClassName": NVIDIA, "count": 4},
                    ],
                }
            ],
            r"may be for \[2, 4\] accelerators",
            id="alternatives with different counts",
        ),
    ],
)
def test_claim_templates_give_the_accelerators_per_replica(requests: list[Json], want: int | str) -> None:
    """If the count is not determined, the error gives the reason."""
    translation = DeviceTranslator(slices=SLICES, templates=[template("t", *requests)], classes=CLASSES)
    value = translation.workload(workload({"name": "gpu", "resourceClaimTemplateName": "t"}))

    if isinstance(want, int):
        assert target_of(KEY, value).accelerators_per_replica == want
    else:
        with pytest.raises(UnplannableTargetError, match=want):
            target_of(KEY, value)


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        pytest.param(
            {"name": "gpu", "resourceClaimName": "shared"},
            "share ResourceClaim 'shared'",
            id="one claim shared by all replicas",
        ),
        pytest.param(
            {"name": "gpu", "resourceClaimTemplateName": "gone"},
            "ResourceClaimTemplate 'gone' does not exist",
            id="a template that does not exist",
        ),
    ],
)
def test_a_claim_whose_devices_cannot_be_counted_makes_the_target_unplannable(entry: Json, want: str) -> None:
    """If it counted as zero accelerators, the replica would fit on any node."""
    translation = DeviceTranslator(slices=SLICES, claims=[claim("shared", request(2))])

    with pytest.raises(UnplannableTargetError, match=want):
        target_of(KEY, translation.workload(workload(entry)))


def test_claim_templates_are_counted_for_each_pod_of_a_leader_worker_group() -> None:
    """Here the leader has no template of its own and uses that of the workers."""
    spec = workload({"name": "gpu", "resourceClaimTemplateName": "t"})["spec"]["template"]["spec"]
    value = {
        "metadata": {"namespace": "ns", "name": "chat"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": spec}}},
    }
    translation = DeviceTranslator(slices=SLICES, templates=[template("t", request(4))])

    found = target_of(KEY._replace(kind=TargetKind.LEADER_WORKER_SET), translation.workload(value))

    assert found.accelerators_per_replica == 8


def test_objects_without_device_claims_are_returned_uncopied() -> None:
    """Clusters without Dynamic Resource Allocation have no extra cost."""
    translation = DeviceTranslator()
    plain, some = node(), workload()
    other = pod("p", claims=[])

    assert translation.node(plain) is plain
    assert translation.workload(some) is some
    assert translation.pod(other) is other
