"""An installation with all parts, from which single permissions are removed."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from support.binding_bench import bound, policy
from support.manifests import Manifest, autoscaler, deployment, listed, variant
from support.models import POLICY, backend, loading_backend, model, worker
from support.models_process import ACCOUNT, models_process
from support.polling import wait_for
from support.routes import route, server
from support.shipped_scheduler import shipped_scheduler
from support.traffic import objective, pool
from support.watching import Place, conditions_of
from support.workloads import leader_worker_set, stateful_set

from hack.controlplane import ControlPlane
from hack.controlplane.client import MERGE_PATCH, collection_of
from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.controlplane.process import Process
from hack.installation import Installation
from hack.installation.manifests import ROOT
from rights.rules import Rule, may, shipped_rules

_SYSTEM: Final = "stowplan-system"
_NODE: Final = "rights"
_PRODUCT: Final = "NVIDIA-L4"
_NAMESPACE: Final = "default"
_GATED: Final = {"schedulingGates": [{"name": "stowplan.dev/placement"}]}
_BEHIND_GATEWAYS: Final = {
    "stowplan.dev/parent-refs": "infra/inference",
    "stowplan.dev/request-priority": "10",
}
_DECISIONS: Final = "stowplan-decisions"
TENANT: Final = "tenant"
"""A user who may edit everything in a namespace."""

_PARTS: Final = (
    *(f"--kustomize={ROOT}/manifests/{name}" for name in ("evictions", "scaling", "objectives")),
    *(f"--filename={ROOT}/manifests/components/{name}/rbac.yaml" for name in ("tenants", "annotated")),
)
_ASKS_FOR_FINALIZERS: Final = "OwnerReferencesPermissionEnforcement"
"""An admission plug-in of some distributions: setting blockOwnerDeletion requires a permission."""

_BOUND_IN_NAMESPACES: Final = {
    "stowplan-controller-scaling": "stowplan-controller",
    "stowplan-models-gateways": ACCOUNT,
}
"""ClusterRoles that users bind, and the accounts to bind them to."""

_DEFINITIONS: Final = (
    Definition.LEADER_WORKER_SETS,
    Definition.INFERENCE_POOLS,
    Definition.HTTP_ROUTES,
    Definition.MODEL_REWRITES,
)
_USED_WHILE_RUNNING: Final = frozenset({"webhooks", "apiserver"})
"""Processes to which requests are sent: nothing can be written without webhooks."""

_METRIC: Final = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/wva_desired_replicas"
_PATIENCE_SECONDS: Final = 60.0
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "controller": {
        "planning": {"intervalSeconds": 1, "evictions": {"enabled": True}, "objectives": True},
        "scaling": {"mode": "direct"},
        "tenants": True,
        "annotated": True,
    },
    "apiserver": {"annotated": True},
    "webhooks": {"tenants": True},
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
"""Objects with certificates or CA bundles from the controller, with paths for patches and for kubectl."""


class RightsStage:
    """The running processes, and the objects that make them use every permission."""

    def __init__(self, plane: ControlPlane, installation: Installation, **others: Process) -> None:
        self.plane = plane
        self._installation = installation
        self._processes = {**installation.processes, **others}
        self._read = dict.fromkeys(self._processes, 0)
        self._has_forgotten = False

    def renew(self) -> None:
        """Recreate what is decided on, expanded or translated, so that everything is written again."""
        made = listed(*_renewed())
        self.plane.kubectl("delete", "--ignore-not-found", "--wait", "--filename=-", input=made)
        self.plane.kubectl("delete", "pod", "--selector=app=gated")
        self.plane.kubectl("apply", "--filename=-", input=made, check=False)

    def renew_unremembered(self) -> None:
        """Do the same with restarted webhooks, whose permission cache is empty."""
        self._processes["webhooks"].stop(patience_seconds=20.0)
        self._installation.start_component("webhooks")
        self.renew()

    def renew_decisions(self) -> None:
        """Do the same without the records of decisions, which are created again."""
        self.plane.kubectl("delete", "--ignore-not-found", "configmap", _DECISIONS)
        self.renew()

    def shrink(self) -> None:
        """Delete what has a record, and apply a Model and a ModelRoute that no longer need other objects."""
        self.plane.kubectl("wait", f"configmap/{_DECISIONS}", "--for=create", "--timeout=60s")
        self.plane.kubectl("delete", "--ignore-not-found", "hpa/annotated", "scaledobject/scaled")
        self.plane.kubectl("wait", "model/qwen", "--for=jsonpath={.status.conditions}", "--timeout=60s")
        self.plane.kubectl("wait", "modelroute/chat", "--for=condition=Translated", "--timeout=60s")
        self.plane.kubectl("apply", "--filename=-", input=listed(*_shrunk()))

    def taint(self) -> None:
        """Leave a node in the state after a controller ended while it moved pods."""
        self.plane.kubectl("taint", "--overwrite", "node", _NODE, "stowplan.dev/moving=:NoSchedule")

    def price(self) -> None:
        """Set another price than before, so that the last valid settings are stored again."""
        data = {"RIGHTS": json.dumps({"cost": str(time.time_ns() % 1_000_000)})}
        where, patch = f"--namespace={_SYSTEM}", json.dumps({"data": data})
        self.plane.kubectl("patch", "configmap", "accelerator-unit-costs", where, f"--patch={patch}")

    def vacate(self) -> None:
        """Delete the Leases."""
        leases = ("stowplan-controller", "stowplan-models")
        self.plane.kubectl("delete", "--ignore-not-found", "lease", *leases, f"--namespace={_SYSTEM}")

    def forget(self) -> None:
        """Remove what the controller issued and injected."""
        for what, (path, _) in _ISSUED.items():
            patch = json.dumps([{"op": "remove", "path": path}])
            self.plane.kubectl("patch", what, f"--namespace={_SYSTEM}", "--type=json", f"--patch={patch}")
        self._has_forgotten = True

    def read_metric(self) -> None:
        """Read a metric with a token, directly from the metrics API, whose answer does not matter."""
        token = self.plane.kubectl("create", "token", "default").stdout.strip()
        url = f"https://{self._installation.address('apiserver')}:9443{_METRIC}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, context=ssl._create_unverified_context()).close()  # noqa: S310, S323, SLF001

    @contextmanager
    def without(self, rule: Rule, verb: str) -> Iterator[None]:
        """Remove a verb from a rule and from equal rules in other parts, until the block ends."""
        same = [item for item in shipped_rules() if (item.process, item.rule) == (rule.process, rule.rule)]
        with ExitStack() as stack:
            stack.callback(self._until_issued)  # runs last
            for item in same:
                stack.enter_context(self._less(item, verb))
            yield

    def restart(self, process: str, use: Callable[[RightsStage], None] | None) -> None:
        """Restart a process with something to do; only its later log is read."""
        running = self._processes[process]
        running.stop(patience_seconds=20.0)
        self._read[process] = running.log.stat().st_size
        if use is None:
            running.start()
        elif process in _USED_WHILE_RUNNING:
            self._installation.start_component(process)
            use(self)
        else:
            use(self)
            running.start()

    def wait_until_told(self, process: str, where: str, sentences: Iterable[str]) -> None:
        """Wait until a line of the process or of a status contains one of some sentences and another text."""
        elsewhere: list[str] = []

        def is_told() -> bool:
            lines = [*self._log(process), *self._statuses()]
            elsewhere[:] = [line for line in lines if any(sentence in line for sentence in sentences)]
            return any(where in line for line in elsewhere)

        wait_for(is_told, lambda: f"{where}: nobody says {sentences}, but: {elsewhere}")

    @contextmanager
    def bound(self, rule: Rule, user: str) -> Iterator[None]:
        """Bind a user to the role of a rule."""
        kind, where = rule.kind.lower(), f"--namespace={_SYSTEM}"
        self.plane.kubectl(
            "create", f"{kind}binding", "rights", f"--{kind}={rule.role}", f"--user={user}", where
        )
        try:
            yield
        finally:
            self.plane.kubectl("delete", f"{kind}binding", "rights", where)

    def may(self, user: str, rule: Rule, verb: str, *, want: bool) -> bool:
        """Return whether a user may do what a rule allows, waiting for the wanted answer up to a timeout."""
        what = f"{rule.rule['resources'][0]}.{rule.rule['apiGroups'][0]}"
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with self.plane.client() as client:
            while (found := may(client, user, verb, what)) != want and time.monotonic() < deadline:
                pass  # each check takes the time of a request
        return found

    def wait_until_answered(self, user: str, manifest: Manifest, answer: str) -> None:
        """Create an object as a user by dry run until the output contains a text."""
        create = ("create", f"--as={user}", "--dry-run=server", "--filename=-")
        said: list[str] = []

        def is_answered() -> bool:
            done = self.plane.kubectl(*create, input=listed(manifest), check=False)
            said.append(done.stdout + done.stderr)
            return answer in said[-1]

        wait_for(is_answered, lambda: said[-1])

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
        place = Place(self.plane, _NAMESPACE)
        return [
            f"{item['kind']} {condition['type']} {condition['reason']}: {condition['message']}"
            for kind in ("va", "aspb", "model", "modelroute")
            for item in place.get(kind)["items"]
            for condition in conditions_of(item).values()
        ]

    @contextmanager
    def _less(self, rule: Rule, verb: str) -> Iterator[None]:
        path = f"{collection_of('rbac.authorization.k8s.io/v1', rule.kind, _SYSTEM)}/{rule.role}"
        with self.plane.client() as client:
            rules = client.value("GET", path)["rules"]
        (position,) = (number for number, item in enumerate(rules) if item == rule.rule)
        verbs = [item for item in rule.verbs if item != verb]
        less = [item | {"verbs": verbs} if number == position else item for number, item in enumerate(rules)]
        self._set_rules(path, [item for item in less if item["verbs"]])
        try:
            yield
        finally:
            self._set_rules(path, rules)

    def _set_rules(self, path: str, rules: list[Any]) -> None:
        with self.plane.client() as client:
            client.call("PATCH", path, {"rules": rules}, media_type=MERGE_PATCH)


@contextmanager
def rights_stage() -> Iterator[RightsStage]:
    """Run a control plane with an installation of all parts."""
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(admission_plugins=[_ASKS_FOR_FINALIZERS]))
        installation = stack.enter_context(Installation(plane, settings=_SETTINGS))
        create_nodes(plane, [KwokNode(name=_NODE, accelerator=_PRODUCT, accelerator_count=16)])
        for part in _PARTS:
            plane.kubectl("apply", "--server-side", part)
        plane.define(*_DEFINITIONS)
        models = stack.enter_context(models_process(plane, "models-gateways", gateways=True))
        for role, account in _BOUND_IN_NAMESPACES.items():
            to = (f"--clusterrole={role}", f"--serviceaccount={_SYSTEM}:{account}")
            plane.kubectl("create", "rolebinding", role, *to, f"--namespace={_NAMESPACE}")
        editing = ("--clusterrole=edit", f"--user={TENANT}", f"--namespace={_NAMESPACE}")
        plane.kubectl("create", "rolebinding", TENANT, *editing)
        scheduler = plane.directory / "scheduler"
        scheduler.mkdir()
        second = stack.enter_context(shipped_scheduler(plane, scheduler, namespace=_SYSTEM))
        plane.kubectl("apply", "--filename=-", input=listed(*_standing()))
        plane.kubectl("apply", "--filename=-", input=_SERVED_BY_OTHERS)
        plane.wait_until_established(selector="rights=others")
        yield RightsStage(plane, installation, models=models, scheduler=second)


def _standing() -> list[Manifest]:
    """Return the objects that exist all the time."""
    gated = deployment("gated", product=_PRODUCT, accelerators=1)
    gated["spec"]["template"]["spec"] |= _GATED
    return [
        deployment("chat", product=_PRODUCT, accelerators=1),
        gated,
        stateful_set("stateful", product=_PRODUCT, accelerators=1),
        leader_worker_set("group", product=_PRODUCT, accelerators=1, size=1),
        policy("waiting"),
        pool("llama", {"app": "chat"}, namespace=_NAMESPACE),
        server(model="Qwen/Qwen3-8B"),
    ]


def _renewed() -> list[Manifest]:
    """Return the objects that are decided on, expanded, translated or reported on."""
    kinds = {"chat": ("apps/v1", "Deployment"), "stateful": ("apps/v1", "StatefulSet")}
    kinds |= {"group": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")}
    bindings = []
    for name, (api_version, kind) in kinds.items():
        binding = bound(name, name)
        target = binding["spec"]["scalingConfiguration"]["target"]["targetRef"]
        target |= {"apiVersion": api_version, "kind": kind}
        bindings.append(binding)
    return [
        variant("gated"),
        *bindings,
        _model(),
        *_annotated(),
        objective("urgent", namespace=_NAMESPACE),
        route(annotations=_BEHIND_GATEWAYS),
    ]


def _annotated() -> Iterator[Manifest]:
    terms = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "m"}
    spec = {"scaleTargetRef": {"name": "annotated"}}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": spec}
    for item, name in ((autoscaler("annotated"), "annotated"), (scaled, "scaled")):
        yield item | {"metadata": {"name": name, "annotations": terms}}


def _shrunk() -> list[Manifest]:
    """Return a Model and a ModelRoute that no longer need the objects made for them."""
    return [model(backend("other")), route()]


def _model() -> Manifest:
    """Return a Model with a scaled Deployment, a scaled LeaderWorkerSet and a list of adapters."""
    scaled = {"maxReplicas": 4, "autoscalingPolicy": POLICY}
    return model(
        backend(**scaled),
        backend("wide", workers=[worker(pods=2)], **scaled),
        loading_backend("law", of="lora"),
    )


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
    _definition("scaledobjects", "keda.sh", "ScaledObject", "v1alpha1", "Namespaced"),
    _definition("nodepools", "karpenter.sh", "NodePool", "v1", "Cluster"),
    _definition("inferencepools", "inference.networking.x-k8s.io", "InferencePool", "v1alpha2", "Namespaced"),
)
"""Kinds that no module of another project defines any more, or that are not ours."""
