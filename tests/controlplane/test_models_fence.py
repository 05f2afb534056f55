"""Admission policies that limit the account of the controller of Models beyond RBAC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from support.manifests import listed
from support.models import backend, loading_backend, model, worker
from support.models_process import models_process
from support.policies import refused_with
from support.watching import conditions_of, watched

from hack.controlplane import ControlPlane
from hack.controlplane.foreign import Definition
from hack.controlplane.process import Process
from hack.installation import Installation

pytestmark = pytest.mark.controlplane

ACCOUNT: Final = "--as=system:serviceaccount:stowplan-system:stowplan-models"
NAME: Final = "forged.v2"
"""A Model that does not exist."""

OWNER: Final = {
    "apiVersion": "registry.volcano.sh/v1alpha1",
    "kind": "Model",
    "name": NAME,
    "uid": "0a9f1c1e-3c54-4b5a-9a7e-2f5f9a6f9f11",
    "controller": True,
}

CHILD: Final = "forged-v2-l4"
"""The name of the workload of its backend."""

ENGINE: Final = {"name": "engine", "image": "example.com/engine"}

Json = dict[str, Any]


def owned(api_version: str, kind: str, spec: Json, owners: list[Json] | None = None, name: str = "") -> Json:
    """Return an object of a Model."""
    metadata = {"name": name or CHILD, "ownerReferences": [OWNER] if owners is None else owners}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def workload(owners: list[Json] | None = None, name: str = "", **pod: Any) -> Json:
    """Return a Deployment."""
    labels = {"app": "new"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [ENGINE]} | pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return owned("apps/v1", "Deployment", spec, owners, name)


def engine(**members: Any) -> list[Json]:
    """Return the containers of a pod with one engine."""
    return [ENGINE | members]


def mounting(**source: Any) -> Json:
    """Return a Deployment with a volume."""
    return workload(volumes=[{"name": "extra", **source}])


def service(**spec: Any) -> Json:
    """Return a Service."""
    return owned("v1", "Service", {"ports": [{"port": 80}], **spec})


def target(name: str, kind: str = "Deployment") -> Json:
    """Return a reference to a workload."""
    return {"apiVersion": "apps/v1", "kind": kind, "name": name}


def autoscaler(reference: Json) -> Json:
    """Return a HorizontalPodAutoscaler that always wants 100 replicas."""
    spec = {"scaleTargetRef": reference, "minReplicas": 100, "maxReplicas": 100}
    return owned("autoscaling/v2", "HorizontalPodAutoscaler", spec)


def binding(**scaling: Any) -> Json:
    """Return an AutoscalingPolicyBinding."""
    spec = {"policyRef": {"name": CHILD}, **scaling}
    return owned("registry.volcano.sh/v1alpha1", "AutoscalingPolicyBinding", spec)


def compared(*names: str) -> Json:
    """Return a binding that distributes replicas over some Deployments."""
    bounds = {"minReplicas": 100, "maxReplicas": 100, "cost": 1}
    params = [{"target": {"targetRef": target(name)}, **bounds} for name in names]
    return binding(optimizerConfiguration={"params": params, "costExpansionRatePercent": 200})


def bound(name: str) -> Json:
    """Return a binding that scales one Deployment."""
    scaled = {"target": {"targetRef": target(name)}, "minReplicas": 100, "maxReplicas": 100}
    return binding(scalingConfiguration=scaled)


def group(leader: Json, worker: Json) -> Json:
    """Return a LeaderWorkerSet, whose pods have some fields."""
    template = {
        "size": 2,
        "leaderTemplate": {"spec": {"containers": [ENGINE]} | leader},
        "workerTemplate": {"spec": {"containers": [ENGINE]} | worker},
    }
    return owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": template})


NOT_NEEDED: Final = "may not mount volumes of kinds that Models do not need"
UNLISTED: Final = "may only mount node directories that the annotation stowplan.dev/node-directories"
OF_OTHERS: Final = "may only scale Deployments and LeaderWorkerSets of the object's Model"
REFUSED: Final[dict[str, tuple[Json, str]]] = {
    "without an owner": (workload([]), "may not write objects that do not belong to a Model"),
    "with an owner of another kind": (
        workload([OWNER | {"kind": "Node"}]),
        "may not write objects that do not belong to a Model",
    ),
    "with a name that has nothing to do with the Model": (
        workload(name="payments"),
        "may only write objects whose names begin with that of their Model",
    ),
    "with a name that only begins with the same letters": (
        workload(name="forged-v21"),
        "may only write objects whose names begin with that of their Model",
    ),
    "with a service account": (
        workload(serviceAccountName="admin"),
        "may only run pods with the service account default",
    ),
    "in the host network": (workload(hostNetwork=True), "may not run pods in the host's namespaces"),
    "in the host PID namespace": (workload(hostPID=True), "may not run pods in the host's namespaces"),
    "privileged": (
        workload(containers=engine(securityContext={"privileged": True})),
        "with privileges or added capabilities",
    ),
    "with an added capability": (
        workload(containers=engine(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})),
        "with privileges or added capabilities",
    ),
    "with a port of the host": (
        workload(initContainers=engine(name="first", ports=[{"containerPort": 80, "hostPort": 80}])),
        "may not run containers with ports of the host",
    ),
    "with a Secret as a volume": (mounting(secret={"secretName": "token"}), NOT_NEEDED),
    "with a token of its service account as a volume": (
        mounting(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
        NOT_NEEDED,
    ),
    "with all files of the node": (mounting(hostPath={"path": "/"}), UNLISTED),
    "with a directory below a listed one": (mounting(hostPath={"path": "/mnt/models/link"}), UNLISTED),
    "on a node that no scheduler has chosen": (workload(nodeName="control-plane"), "may not assign pods"),
    "with a priority class of the system": (
        workload(priorityClassName="system-node-critical"),
        "may not run pods with a priority class of the system",
    ),
    "on a control plane": (
        workload(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        "may not run pods that tolerate the taints of control planes",
    ),
    "regardless of taints": (
        workload(tolerations=[{"operator": "Exists"}]),
        "may not run pods that tolerate the taints of control planes",
    ),
    # An older name of serviceAccountName, which is not converted in custom resources.
    "a group whose workers have a service account": (
        group({}, {"serviceAccount": "admin"}),
        "may only run pods with the service account default",
    ),
    "a group whose leader has all files of the node": (
        group({"volumes": [{"name": "extra", "hostPath": {"path": "/"}}]}, {}),
        UNLISTED,
    ),
    "a Service that receives the traffic of an address": (
        service(externalIPs=["192.0.2.1"]),
        "may not add external IPs to Services",
    ),
    "a Service that opens a port of all nodes": (
        service(type="NodePort"),
        "may only write Services of the type ClusterIP",
    ),
    "a Service that is an alias": (
        service(type="ExternalName", externalName="example.com"),
        "may only write Services of the type ClusterIP",
    ),
    "a HorizontalPodAutoscaler of another Deployment": (autoscaler(target("payments")), OF_OTHERS),
    "a HorizontalPodAutoscaler of a StatefulSet": (autoscaler(target(CHILD, "StatefulSet")), OF_OTHERS),
    "a binding of another Deployment": (bound("payments"), OF_OTHERS),
    "a binding of two Deployments, one of which is another's": (compared(CHILD, "payments"), OF_OTHERS),
}
ACCEPTED: Final[dict[str, Json]] = {
    "volumes that Models need": workload(
        volumes=[
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "adapters", "configMap": {"name": CHILD}},
            {"name": "weights", "persistentVolumeClaim": {"claimName": "models"}},
            {"name": "cache", "hostPath": {"path": "/mnt/models", "type": "DirectoryOrCreate"}},
        ]
    ),
    "a group with a listed directory": group(
        {"volumes": [{"name": "cache", "hostPath": {"path": "/mnt/models"}}]}, {"tolerations": []}
    ),
    "a toleration that a cluster adds to pods with accelerators": workload(
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
    ),
    "a Service": service(),
    "a HorizontalPodAutoscaler of the Model": autoscaler(target(CHILD)),
    "a HorizontalPodAutoscaler of a group": autoscaler(target(CHILD, "LeaderWorkerSet")),
    "a binding of the Model": bound(CHILD),
    "a binding of all backends": compared(CHILD, "forged-v2-h100"),
}


@pytest.fixture(scope="module", autouse=True)
def process(control_plane: ControlPlane, installation: Installation) -> Iterator[Process]:
    """Run the controller of Models with the permissions in its manifests."""
    control_plane.define(Definition.LEADER_WORKER_SETS)
    with models_process(control_plane) as started:
        yield started


@pytest.fixture(scope="module")
def listing(control_plane: ControlPlane) -> Iterator[str]:
    """Yield a namespace that lists directories of nodes."""
    name, directories = "lists-directories", {"stowplan.dev/node-directories": "/mnt/cache, /mnt/models"}
    metadata = {"name": name, "annotations": directories}
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_the_account_cannot_create_objects_beyond_models(
    control_plane: ControlPlane, listing: str, value: Json, why: str
) -> None:
    """A holder of its token can create nothing that reaches beyond a Model."""
    arguments = ("create", ACCOUNT, f"--namespace={listing}", "--dry-run=server", "--filename=-")
    refusal = partial(control_plane.kubectl, *arguments, input=json.dumps(value), check=False)

    refused_with(refusal, "the controller of Models of Stowplan may", why)


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED)
def test_the_account_can_create_what_models_need(
    control_plane: ControlPlane, listing: str, value: Json
) -> None:
    """The namespace lists the directory of the node."""
    arguments = ("create", ACCOUNT, f"--namespace={listing}", "--dry-run=server", "--filename=-")
    assert "created" in control_plane.kubectl(*arguments, input=json.dumps(value)).stdout


@pytest.mark.parametrize("where", ["stowplan-system", "kube-system"])
def test_the_account_cannot_create_objects_in_namespaces_with_foreign_secrets(
    control_plane: ControlPlane, where: str
) -> None:
    """This includes objects with a forged owner reference to a Model."""
    arguments = ("create", ACCOUNT, f"--namespace={where}", "--dry-run=server", "--filename=-")
    refusal = partial(control_plane.kubectl, *arguments, input=json.dumps(workload([OWNER])), check=False)

    refused_with(refusal, "in its own namespace or in kube-system")


def test_the_account_cannot_change_objects_of_others(control_plane: ControlPlane, namespace: str) -> None:
    """It cannot take them over, delete them, or scale them."""
    place = f"--namespace={namespace}"
    others = [
        workload([], "new"),
        owned("v1", "Service", {"ports": [{"port": 80}]}, [], "new"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}},
    ]
    control_plane.kubectl("apply", place, "--filename=-", input=listed(*others))
    taken = json.dumps({"metadata": {"ownerReferences": [OWNER]}})
    for kind in ("deployment", "service", "configmap"):
        for what in (("patch", f"{kind}/new", f"--patch={taken}"), ("delete", f"{kind}/new")):
            arguments = (*what, ACCOUNT, place, "--dry-run=server")
            refused_with(
                partial(control_plane.kubectl, *arguments, check=False),
                "may not write objects that do not belong to a Model",
            )
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "new", "namespace": namespace},
        "spec": {"replicas": 3},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/new/scale?dryRun=All"
    replace = ("replace", f"--raw={path}", ACCOUNT, "--filename=-")
    refusal = partial(control_plane.kubectl, *replace, input=json.dumps(scale), check=False)
    refused_with(refusal, "may not scale anything itself")


def test_the_account_can_create_the_objects_of_a_model(control_plane: ControlPlane, listing: str) -> None:
    """All kinds that a Model needs are created, also for a name with dots."""
    place = f"--namespace={listing}"
    value = model(loading_backend("law", cacheURI="hostpath:///mnt/models/"), name="qwen2.5")
    control_plane.kubectl("apply", place, "--filename=-", input=listed(value))
    control_plane.kubectl("wait", place, "model/qwen2.5", "--for=condition=Initialized", "--timeout=60s")
    made = [f"{kind}/qwen2-5-l4" for kind in ("deployment", "service", "configmap", "modelserver")]
    control_plane.kubectl("get", place, *made, "modelroute/qwen2.5")


def test_a_node_directory_that_the_namespace_does_not_list_is_reported(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The condition contains the message of the policy."""
    value = model(backend(cacheURI="hostpath:///mnt/models"))
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(value))

    def is_reported(item: Json) -> bool:
        return UNLISTED in conditions_of(item).get("Failed", {}).get("message", "")

    watched(control_plane, namespace, "model/qwen", is_reported)


def test_what_others_added_to_a_workload_does_not_prevent_its_updates(
    control_plane: ControlPlane, namespace: str
) -> None:
    """This includes what the account cannot add, such as a directory of the node in an earlier release."""
    place = f"--namespace={namespace}"
    control_plane.kubectl("apply", place, "--filename=-", input=listed(model()))
    control_plane.kubectl("wait", place, "model/qwen", "--for=condition=Initialized", "--timeout=60s")
    volumes = [{"name": "ca", "secret": {"secretName": "ca"}}, {"name": "node", "hostPath": {"path": "/mnt"}}]
    added = {"spec": {"template": {"spec": {"volumes": volumes, "tolerations": [{"operator": "Exists"}]}}}}
    opened = {"spec": {"type": "NodePort", "externalIPs": ["192.0.2.1"]}}
    control_plane.kubectl("patch", place, "deployment/qwen-l4", f"--patch={json.dumps(added)}")
    control_plane.kubectl("patch", place, "service/qwen-l4", f"--patch={json.dumps(opened)}")

    changed = backend(workers=[worker(image="example.com/next", config={"port": 9000})])
    control_plane.kubectl("apply", place, "--filename=-", input=listed(model(changed)))

    for what in (
        "deployment/qwen-l4 jsonpath={.spec.template.spec.containers[0].image}=example.com/next",
        "service/qwen-l4 jsonpath={.spec.ports[0].port}=9000",
        "deployment/qwen-l4 jsonpath={.spec.template.spec.tolerations[0].operator}=Exists",
        "service/qwen-l4 jsonpath={.spec.type}=NodePort",
    ):
        name, _, condition = what.partition(" ")
        control_plane.kubectl("wait", place, name, f"--for={condition}", "--timeout=60s")
