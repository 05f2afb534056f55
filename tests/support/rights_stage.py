"""An installation with every part, from which one right after the other is taken away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client
from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import Node, create_nodes
from hack.controlplane.process import Process
from hack.installation import Installation
from hack.installation.manifests import ROOT
from support.binding_bench import bound, policy
from support.manifests import Manifest, deployment, listed, variant
from support.models import POLICY, backend, model, worker
from support.models_process import models_process
from support.rights import Rule, may
from support.workloads import leader_worker_set, stateful_set

_SYSTEM: Final = "stowplan-system"
_PRODUCT: Final = "NVIDIA-L4"
_NODE: Final = "rights"
_SCALING: Final = "stowplan-controller-scaling"
_PATIENCE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.2
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "controller": {
        "planning": {"intervalSeconds": 1, "evictions": {"enabled": True}},
        "scaling": {"mode": "direct"},
    }
}
_ISSUED: Final = {
    "secret/stowplan-apiserver-certificate": ("/data", r"{.data.tls\.crt}"),
    "validatingwebhookconfiguration/stowplan": (
        "/webhooks/0/clientConfig/caBundle",
        "{.webhooks[0].clientConfig.caBundle}",
    ),
    "crd/variantautoscalings.llmd.ai": (
        "/spec/conversion/webhook/clientConfig/caBundle",
        "{.spec.conversion.webhook.clientConfig.caBundle}",
    ),
    "apiservice/v1beta1.external.metrics.k8s.io": ("/spec/caBundle", "{.spec.caBundle}"),
}
"""What the controller writes for certificates, and where, as a patch and as kubectl say it."""

_GATED: Final = {"schedulingGates": [{"name": "stowplan.dev/placement"}]}


class RightsStage:
    """What runs, and the objects on which every right is used."""

    def __init__(self, plane: ControlPlane, installation: Installation, models: Process) -> None:
        self.plane = plane
        self._installation = installation
        self._processes = {**installation.processes, "models": models}
        self._read = dict.fromkeys(self._processes, 0)
        self._has_forgotten = False

    def renew(self) -> None:
        """Make what is decided, scaled and expanded anew, so that all of it is written once more."""
        decided = [*_decided(), _model()]
        self.plane.kubectl("delete", "--ignore-not-found", "--wait", "--filename=-", input=listed(*decided))
        self.plane.kubectl("delete", "pod", "--selector=app=gated")
        self.plane.kubectl("apply", "--filename=-", input=listed(*decided), check=False)

    def renew_unremembered(self) -> None:
        """Do the same with webhooks that do not remember who may scale what."""
        self._processes["webhooks"].stop(patience_seconds=20.0)
        self._installation.start_component("webhooks")
        self.renew()

    def shrink(self) -> None:
        """Let the Model want nothing of what it became."""
        self.plane.kubectl("wait", "model/qwen", "--for=jsonpath={.status.conditions}", "--timeout=60s")
        self.plane.kubectl("apply", "--filename=-", input=listed(model(backend("other"))))

    def taint(self) -> None:
        """Leave a node as a controller does that ends while it moves pods."""
        self.plane.kubectl("taint", "--overwrite", "node", _NODE, "stowplan.dev/moving=:NoSchedule")

    def vacate(self) -> None:
        """Delete the Leases."""
        leases = ("stowplan-controller", "stowplan-models")
        self.plane.kubectl("delete", "--ignore-not-found", "lease", *leases, f"--namespace={_SYSTEM}")

    def forget(self) -> None:
        """Take away what the controller issued and injected."""
        for what, (path, _) in _ISSUED.items():
            patch = json.dumps([{"op": "remove", "path": path}])
            self.plane.kubectl("patch", what, f"--namespace={_SYSTEM}", "--type=json", f"--patch={patch}")
        self._has_forgotten = True

    @contextmanager
    def without(self, rule: Rule, verb: str) -> Iterator[None]:
        """Take a verb out of a rule; it comes back at the end."""
        where = (rule.kind.lower(), rule.role, f"--namespace={_SYSTEM}")
        rules = json.loads(self.plane.kubectl("get", *where, "--output=json").stdout)["rules"]
        (position,) = (number for number, item in enumerate(rules) if item == rule.rule)
        verbs = [item for item in rule.verbs if item != verb]
        less = [item | {"verbs": verbs} if number == position else item for number, item in enumerate(rules)]
        self._set_rules(where, [item for item in less if item["verbs"]])
        try:
            yield
        finally:
            self._set_rules(where, rules)
            self._until_issued()

    def restart(self, process: str, use: Callable[[RightsStage], None] | None) -> None:
        """Start a process anew, with something to do; what it says from now on is read."""
        running = self._processes[process]
        running.stop(patience_seconds=20.0)
        self._read[process] = running.log.stat().st_size
        if use is None:
            running.start()
        elif process == "webhooks":  # nothing is written without them
            self._installation.start_component(process)
            use(self)
        else:
            use(self)
            running.start()

    def until_told(self, process: str, *sentences: str) -> str:
        """Wait until the process, or a status, says one of some sentences; returns the line that does."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            for line in (*self._log(process), *self._statuses()):
                if any(sentence in line for sentence in sentences):
                    return line
            assert time.monotonic() < deadline, f"nobody says {sentences}"
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def bound(self, rule: Rule, user: str) -> Iterator[None]:
        """Give a user the role of a rule."""
        self.plane.kubectl(
            "create", "clusterrolebinding", "rights", f"--clusterrole={rule.role}", f"--user={user}"
        )
        try:
            yield
        finally:
            self.plane.kubectl("delete", "clusterrolebinding", "rights")

    def may(self, user: str, rule: Rule, verb: str, *, want: bool) -> bool:
        """Ask whether a user may do what a rule is about, as long as the answer is not the wanted one."""
        what = f"{rule.rule['resources'][0]}.{rule.rule['apiGroups'][0]}"
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with closing(Client(self.plane.server, self.plane.directory / "pki")) as client:
            while (found := may(client, user, verb, what)) != want and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        return found

    def _until_issued(self) -> None:
        if not self._has_forgotten:
            return
        for what, (_, path) in _ISSUED.items():
            is_there = (f"--for=jsonpath={path}", "--timeout=60s")
            self.plane.kubectl("wait", what, f"--namespace={_SYSTEM}", *is_there)
        self._has_forgotten = False

    def _log(self, process: str) -> list[str]:
        with self._processes[process].log.open("rb") as file:
            file.seek(self._read[process])
            return file.read().decode().replace('\\"', '"').splitlines()

    def _statuses(self) -> list[str]:
        found = self.plane.kubectl("get", "va,aspb,models", "--output=json").stdout
        return [
            f"{item['kind']} {condition['type']} {condition['reason']}: {condition['message']}"
            for item in json.loads(found)["items"]
            for condition in item.get("status", {}).get("conditions", [])
        ]

    def _set_rules(self, where: tuple[str, ...], rules: list[Any]) -> None:
        patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
        self.plane.kubectl("patch", *where, "--type=json", f"--patch={patch}")


@contextmanager
def rights_stage() -> Iterator[RightsStage]:
    """Run a control plane with all of it."""
    with ControlPlane() as plane, Installation(plane, settings=_SETTINGS) as installation:
        create_nodes(plane, [Node(name=_NODE, accelerator=_PRODUCT, accelerator_count=16)])
        for part in ("evictions", "scaling"):
            plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / part}")
        account = f"--serviceaccount={_SYSTEM}:stowplan-controller"
        plane.kubectl("create", "rolebinding", _SCALING, f"--clusterrole={_SCALING}", account)
        plane.define(Definition.LEADER_WORKER_SETS, Definition.INFERENCE_POOLS)
        with models_process(plane) as models:
            plane.kubectl("apply", "--filename=-", input=listed(*_workloads(), policy("waiting")))
            plane.kubectl("apply", "--filename=-", input=_SERVED_BY_OTHERS)
            plane.wait_until_established("crd", "--selector=rights=others")
            yield RightsStage(plane, installation, models)


def _workloads() -> list[Manifest]:
    gated = deployment("gated", product=_PRODUCT, accelerators=1)
    gated["spec"]["template"]["spec"] |= _GATED
    return [
        deployment("chat", product=_PRODUCT, accelerators=1),
        gated,
        stateful_set("stateful", product=_PRODUCT, accelerators=1),
        leader_worker_set("group", product=_PRODUCT, accelerators=1, size=1),
    ]


def _decided() -> list[Manifest]:
    kinds = {"chat": ("apps/v1", "Deployment"), "stateful": ("apps/v1", "StatefulSet")}
    kinds |= {"group": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")}
    bindings = []
    for name, (api_version, kind) in kinds.items():
        binding = bound(name, name)
        target = binding["spec"]["scalingConfiguration"]["target"]["targetRef"]
        target |= {"apiVersion": api_version, "kind": kind}
        bindings.append(binding)
    return [variant("gated"), *bindings]


def _model() -> Manifest:
    """Return a Model that becomes a Deployment and a LeaderWorkerSet, both scaled."""
    scaled = {"maxReplicas": 4, "autoscalingPolicy": POLICY}
    return model(backend(**scaled), backend("wide", workers=[worker(pods=2)], **scaled))


def _definition(plural: str, group: str, kind: str, version: str, scope: str) -> Manifest:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {"rights": "others"},
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


_SERVED_BY_OTHERS: Final = listed(
    _definition("nodepools", "karpenter.sh", "NodePool", "v1", "Cluster"),
)
