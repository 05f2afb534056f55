"""Projections of pods, nodes and workloads in caches: kept fields, shared values and memory use."""

from __future__ import annotations

import copy
import tracemalloc
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cluster.cache import Cache
from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import PODS
from controller.engines.scraping import ScrapeLimits, metrics_url
from controller.evictions.rounds import owner_of
from controller.observe.accelerators import accelerators_of
from controller.observe.expected_performance import engine_argument
from controller.observe.inventory import inventory, oversized_nodes
from controller.observe.movable import Disruptions, lowest_priority, movable_pods
from controller.observe.pods import by_target, is_present, is_ready, removal_order, target_of_pod
from controller.observe.quotas import Tenant, limits
from controller.observe.removal_order import leaving_order, marks
from controller.observe.rules import Neighbours
from controller.observe.scheduling import node_affinity, tolerations
from controller.observe.targets import TargetKey, TargetKind, target_of
from controller.projections import Projection
from controller.variants.placing import ReleasedPod, is_gated

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.schema.json import Json

MOST_BYTES = 5_000
"""The memory limit of one pod in a cache; 20,000 of them take 100 MB."""

PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10, "failureThreshold": 3}
TIME = "2026-11-23T04:00:00Z"


def pod(number: int = 0, **spec: Any) -> Json:
    """Return a pod of about 6 KB, as the API server returns it."""
    template = f"llama-{number // 40}"
    environment = [{"name": f"SETTING_{index}", "value": "x" * 40} for index in range(30)]
    engine = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.30.0",
        "command": ["vllm", "serve"],
        "args": ["--model=meta/llama", "--max-num-seqs=64", f"--served-model-name={template}"],
        "env": environment,
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "resources": {
            "limits": {"nvidia.com/gpu": "2", "memory": "64Gi"},
            "requests": {"nvidia.com/gpu": "2", "cpu": "4"},
        },
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "volumeMounts": [{"name": f"v{index}", "mountPath": f"/mnt/{index}"} for index in range(6)],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    starter = {"name": "fetch", "image": "fetch:1", "env": environment[:5], "resources": {}}
    times = [
        {"type": name, "status": "True", "lastTransitionTime": TIME, "lastProbeTime": None}
        for name in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{template}-5d8f9c7b6d-{number:05d}",
            "generateName": f"{template}-5d8f9c7b6d-",
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(10_000_000 + number),
            "creationTimestamp": TIME,
            "labels": {"app": template, "pod-template-hash": "5d8f9c7b6d"},
            "annotations": {
                "kubectl.kubernetes.io/restartedAt": TIME,
                "controller.kubernetes.io/pod-deletion-cost": "-1",
                "stowplan.dev/pod-deletion-cost": "-1",
                "stowplan.dev/movable": "true",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{template}-5d8f9c7b6d",
                    "uid": f"{template}-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {f"f:{index}": {} for index in range(60)}}
            ],
        },
        "spec": {
            "containers": [engine],
            "initContainers": [starter],
            "nodeName": f"node-{number % 2000}",
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "priority": 5,
            "priorityClassName": "usual",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                {"name": "token", "projected": {"sources": [{"configMap": {"name": "ca"}}]}},
            ],
            **spec,
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.{number // 65536}.{number // 256 % 256}.{number % 256}",
            "podIPs": [{"ip": "10.0.0.1"}],
            "hostIP": "10.128.0.1",
            "startTime": TIME,
            "conditions": times,
            "containerStatuses": [
                {"name": "engine", "ready": True, "restartCount": 0, "imageID": "sha256:" + "0" * 64}
            ],
        },
    }  # fmt: skip


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}  # fmt: skip
SIDECAR = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": 1}}}
PODS_OF_ALL_SORTS = [
    pod(),
    pod(1, affinity=AFFINITY, schedulingGates=[{"name": "stowplan.dev/placement"}], nodeName=None),
    pod(2, hostNetwork=True, activeDeadlineSeconds=60, resourceClaims=[{"name": "gpu"}]),
    pod(3, volumes=[{"name": "a", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {}}]),
    pod(4, initContainers=[SIDECAR]),
]  # fmt: skip
PODS_OF_ALL_SORTS[2]["metadata"]["deletionTimestamp"] = TIME
PODS_OF_ALL_SORTS[3]["status"]["conditions"][2]["status"] = "False"

LIMITS = ScrapeLimits(
    port_names=("http",), pod_networks=(), timeout_seconds=1, limit_bytes=1, concurrency=1
)  # fmt: skip
OWNER = TargetKey(TargetKind.DEPLOYMENT, "team-0", "llama-0")
BUDGET = {
    "metadata": {"namespace": "team-0", "name": "budget"},
    "spec": {"selector": {"matchLabels": {"app": "llama-0"}}},
    "status": {"disruptionsAllowed": 1},
}
QUOTA = {
    "metadata": {"namespace": "team-0", "name": "quota"},
    "spec": {
        "hard": {"requests.nvidia.com/gpu": "9"},
        "scopes": ["NotBestEffort", "NotTerminating"],
        "scopeSelector": {
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["usual"]}]
        },
    },
}


def _urls(pods: list[Json]) -> list[str]:
    found = []
    for item in pods:
        try:
            found.append(metrics_url(item, LIMITS))
        except Exception as error:  # noqa: BLE001 (the message is compared)
            found.append(str(error))
    return found


READERS: dict[str, Callable[[list[Json]], object]] = {
    "present and ready": lambda pods: [(is_present(item), is_ready(item)) for item in pods],
    "target and owner": lambda pods: [(target_of_pod(item), owner_of(item)) for item in pods],
    "accelerators requested": lambda pods: [accelerators_of(item["spec"]) for item in pods],
    "removal order of ReplicaSets": lambda pods: [item["metadata"]["name"] for item in removal_order(pods)],
    "removal order of Stowplan": lambda pods: [
        item["metadata"]["name"] for item in leaving_order(pods, {})
    ],
    "deletion-cost marks": lambda pods: marks(pods, 0),
    "groups": lambda pods: [
        (key, [item["metadata"]["uid"] for item in group]) for key, group in by_target(pods).items()
    ],
    "movable pods": lambda pods: movable_pods(
        pods, frozenset(), Disruptions([BUDGET]), highest_priority=9
    ),
    "the lowest priority": lambda pods: lowest_priority([pods]),
    "neighbours": lambda pods: Neighbours([], pods).workload_of({"matchLabels": {"app": "llama-0"}}, OWNER),
    "quotas": lambda pods: limits(
        [QUOTA], [Tenant(namespace="team-0", accelerator="L40S", pod_spec=pods[0]["spec"])], pods, frozenset()
    ),
    "metrics URLs": _urls,
    "affinity, tolerations and node selector": lambda pods: [
        (node_affinity(item["spec"]), tolerations(item["spec"]), item["spec"].get("nodeSelector"))
        for item in pods
    ],
    "engine arguments": lambda pods: [
        engine_argument(item["spec"], "max-num-seqs") for item in pods
    ],
    "gates": lambda pods: [
        ReleasedPod(pod=item, node="n").patch() for item in pods if is_gated(item)
    ],
    "start and creation times": lambda pods: [
        (item["status"]["startTime"], item["metadata"]["creationTimestamp"]) for item in pods
    ],
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_readers_give_equal_results_for_projected_and_complete_pods(reader: str) -> None:
    """Projections keep every field that is read."""
    projection = Projection()
    whole = copy.deepcopy(PODS_OF_ALL_SORTS)

    assert READERS[reader]([projection.pod(item) for item in whole]) == READERS[reader](PODS_OF_ALL_SORTS)


def test_projected_nodes_and_workloads_give_equal_results() -> None:
    """Images of nodes and environment variables of containers are removed."""
    node = {
        "metadata": {
            "name": "n",
            "resourceVersion": "1",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            "annotations": {"volumes.kubernetes.io/attach": "true"},
        },
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8"},
            "capacity": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": TIME}],
            "images": [{"names": ["a"]}],
        },
    }
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}
    workload = {
        "metadata": {"namespace": "team-0", "name": "llama-0", "managedFields": []},
        "spec": {"replicas": 3, "template": template},
    }
    group = {
        "metadata": {"namespace": "team-0", "name": "llama-0"},
        "spec": {"replicas": 3, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }
    projection = Projection()

    kept, small, groups = projection.node(node), projection.workload(workload), projection.workload(group)

    assert inventory([kept], [], frozenset()) == inventory([node], [], frozenset())
    assert oversized_nodes([kept]) == oversized_nodes([node])
    assert "images" not in kept["status"]
    assert accelerators_of(target_of(OWNER, small).pod_spec) == 2
    assert engine_argument(target_of(OWNER, small).pod_spec, "max-num-seqs") == 64
    assert "env" not in target_of(OWNER, small).pod_spec["containers"][0]
    lws = OWNER._replace(kind=TargetKind.LEADER_WORKER_SET)
    assert "env" not in target_of(lws, groups).pod_spec["containers"][0]
    assert target_of(lws, groups).replicas == 3


def test_pods_of_one_template_share_their_containers_in_memory() -> None:
    """They hold the same object, not an equal one."""
    projection = Projection()

    first, second = projection.pod(pod(1)), projection.pod(copy.deepcopy(pod(2)))

    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert first["metadata"]["ownerReferences"] is second["metadata"]["ownerReferences"]
    assert first["spec"]["nodeName"] != second["spec"]["nodeName"]


def test_the_recorded_writer_of_many_objects_is_stored_once() -> None:
    """A user's record may be long, for example with many groups."""
    projection, value = Projection(), {"annotations": {"stowplan.dev/written-by": "ann"}, "managedFields": []}
    texts = [msgspec.json.encode({"metadata": value}) for _ in range(2)]
    made = [projection.with_writer(msgspec.json.decode(text))["metadata"] for text in texts]

    first, second = (item["annotations"]["stowplan.dev/written-by"] for item in made)
    assert first is second
    assert not any("managedFields" in item for item in made)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON_VALUES, max_size=20))
def test_sharing_changes_no_value(values: list[object]) -> None:
    """1 and True, and 0 and False, are equal in Python but are not shared."""
    projection = Projection()

    shared = [projection.share(copy.deepcopy(value)) for value in values]

    assert list(map(repr, shared)) == list(map(repr, values))


def test_a_pod_in_a_cache_takes_little_memory() -> None:
    """Measured are Python's allocations for 4,000 pods of 100 templates, after decoding."""
    texts = [msgspec.json.encode(pod(number)) for number in range(4000)]
    cache = Cache(cast("Cluster", None), PODS, reduce=Projection().pod)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache.replace([cache.entry_of(msgspec.json.decode(text)) for text in texts])
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert len(texts[0]) > 5_000
    assert len(cache.items()) == 4000
    assert grown / 4000 < MOST_BYTES
