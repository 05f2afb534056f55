"""ModelRoutes translated to Gateway API objects: validated by the real CRDs, updated, and deleted."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import Manifest
from support.models_process import ACCOUNT, NAMESPACE, models_process
from support.policies import refused_with
from support.routes import GATEWAY, NETWORKING, route, server
from support.watching import Place, conditions_of

from hack.controlplane.foreign import Definition

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

DEFINITIONS = (
    Definition.HTTP_ROUTES,
    Definition.INFERENCE_POOLS,
    Definition.MODEL_REWRITES,
)
OPTED_IN = {"stowplan.dev/parent-refs": "infra/inference"}
POOL = {
    "selector": {"matchLabels": {"app": "chat"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "chat-epp", "port": {"number": 9002}},
}
OBJECTIVE = {"priority": 1, "poolRef": {"name": "foreign"}}
REWRITE = {"poolRef": {"name": "foreign"}, "rules": [{"targets": [{"modelRewrite": "other"}]}]}
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def _defined(control_plane: ControlPlane, installation: Installation) -> None:
    """Install the kinds that routes are translated to; Stowplan installs InferenceObjectives itself."""
    control_plane.define(*DEFINITIONS)


@pytest.fixture(scope="module")
def _process(control_plane: ControlPlane, _defined: None) -> Iterator[None]:
    """Run the controller of Models with permissions for Gateways."""
    with models_process(control_plane, "models-gateways", gateways=True):
        yield


class Routed(Place):
    """A namespace in which the controller may write."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        super().__init__(control_plane, namespace)
        self.kubectl(
            "create",
            "rolebinding",
            "gateways",
            "--clusterrole=stowplan-models-gateways",
            f"--serviceaccount={NAMESPACE}:{ACCOUNT}",
        )

    def attempt(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the account of the controller, without effect."""
        account = f"--as=system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        where = (f"--namespace={self.namespace}", "--dry-run=server")
        return self.control_plane.kubectl(*arguments, account, *where, check=False, **options)

    def wait_for_reason(self, reason: str, name: str = "chat", message: str = "") -> str:
        """Wait for a reason (empty for none) and a text in the condition's message; return the message."""

        def translated(item: Manifest) -> Manifest:
            return conditions_of(item).get("Translated", {})

        def is_so(item: Manifest) -> bool:
            found = translated(item)
            return found.get("reason", "") == reason and message in found.get("message", "")

        found = self.watched(f"modelroute/{name}", is_so)
        return str(translated(found).get("message", ""))


@pytest.fixture
def place(control_plane: ControlPlane, namespace: str, _process: None) -> Routed:
    """Return a namespace whose routes can be translated."""
    return Routed(control_plane, namespace)


def test_a_translated_route_is_updated_restored_and_deleted(place: Routed) -> None:
    """Its objects follow every change and are deleted on opting out; a pool with the last of its routes."""
    named = server(model="Qwen/Qwen3-8B", trafficPolicy={"timeout": "90s"})
    prioritised = route(annotations={**OPTED_IN, "stowplan.dev/request-priority": "10"})
    place.apply(named, prioritised, route(name="other", modelName="other", annotations=OPTED_IN))
    whole = "made: HTTPRoute chat, InferenceModelRewrite chat, InferenceObjective chat, InferencePool l4"
    # Two routes share the pool: the one that was later to create it reports it in its next reconciliation.
    place.wait_for_reason("Translated", message=whole)
    made = place.get("httproute/chat")["spec"]
    assert made["parentRefs"] == [GATEWAY]
    assert made["rules"][0]["timeouts"] == {"request": "1m30s"}
    place.wait_for_reason("Translated", "other")

    place.kubectl("delete", "httproute/chat")
    place.watched("httproute/chat")
    place.kubectl("patch", "infpool/l4", "--type=merge", '--patch={"spec":{"targetPorts":[{"number":1}]}}')
    place.wait("infpool/l4", "jsonpath={.spec.targetPorts[0].number}=8000")
    place.apply(server(model="Qwen/Qwen3-8B", workloadPort={"port": 9000}))
    place.wait("infpool/l4", "jsonpath={.spec.targetPorts[0].number}=9000")

    place.kubectl("annotate", "modelroute/chat", "stowplan.dev/parent-refs=", "--overwrite")
    for what in ("httproute", "inferencemodelrewrite", "inferenceobjective"):
        place.wait_until_deleted(f"{what}/chat")
    place.wait_for_reason("")
    assert place.names("infpool") == ["l4"]
    place.kubectl("delete", "modelroute/other")
    for what in ("infpool/l4", "httproute/other"):  # garbage collection has no fixed order
        place.wait_until_deleted(what)


def test_a_namespace_opts_in_and_untranslatable_fields_are_listed(place: Routed) -> None:
    """The condition has their paths. Retries can be translated if the CRD of HTTPRoutes has that field."""
    retried = server(trafficPolicy={"retry": {"attempts": 2}})
    place.apply(retried, route(rateLimit={"inputTokensPerUnit": 1000}))
    place.kubectl("annotate", "namespace", place.namespace, "stowplan.dev/parent-refs=infra/inference")

    assert place.wait_for_reason("Partially") == (
        "spec.rateLimit: a Gateway does not count tokens: nothing is limited;"
        " ModelServer l4: spec.trafficPolicy.retry: the installed definition of HTTPRoutes has no retry"
    )
    assert "retry" not in place.get("httproute/chat")["spec"]["rules"][0]


def test_foreign_objects_and_rejections_by_a_gateway_are_reported(place: Routed) -> None:
    """An object of the same name is not taken over, and the condition contains the Gateway's message."""
    foreign = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "chat"},
        "spec": {},
    }
    place.apply(foreign, server(), route(annotations=OPTED_IN))
    said = place.wait_for_reason("ObjectExists")
    assert said.startswith("HTTPRoute chat does not belong to this route and is not changed")
    assert "parentRefs" not in place.get("httproute/chat")["spec"]

    place.kubectl("delete", "httproute/chat")
    place.wait_for_reason("Translated")
    refusal = {
        "type": "Accepted",
        "status": "False",
        "reason": "UnsupportedValue",
        "message": "no such expression",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    parent = {"parentRef": {"name": "inference"}, "controllerName": "example.com/gw", "conditions": [refusal]}
    place.kubectl(
        "patch",
        "httproute/chat",
        "--subresource=status",
        "--type=merge",
        f"--patch={json.dumps({'status': {'parents': [parent]}})}",
    )
    said = place.wait_for_reason("RefusedByGateway")
    assert said == "HTTPRoute chat: Gateway inference: Accepted is False: no such expression"

    place.kubectl("annotate", "modelroute/chat", "stowplan.dev/parent-refs=a/b/c/d", "--overwrite")
    said = place.wait_for_reason("AnnotationNotUnderstood")
    assert "NAMESPACE/NAME" in said
    assert place.names("httproute") == ["chat"]


def test_the_account_can_only_write_objects_of_a_model_route(place: Routed) -> None:
    """The role of a namespace covers these kinds as a whole; a policy limits it to translated objects."""
    owner = {"apiVersion": NETWORKING, "kind": "ModelRoute", "name": "chat", "uid": "u", "controller": True}
    values = (
        _translated("gateway.networking.k8s.io/v1", "HTTPRoute", {}),
        _translated("inference.networking.k8s.io/v1", "InferencePool", POOL),
        _translated("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective", OBJECTIVE),
        _translated("inference.networking.x-k8s.io/v1alpha2", "InferenceModelRewrite", REWRITE),
    )
    place.apply(*values)
    taken = json.dumps({"metadata": {"ownerReferences": [owner]}})
    for value in values:
        what = f"{value['kind']}/foreign"
        for write in (("patch", what, "--type=merge", f"--patch={taken}"), ("delete", what)):
            attempt = partial(place.attempt, *write)
            refused_with(attempt, "may not write objects that do not belong to a ModelRoute")

    new = {"name": "new", "ownerReferences": [owner]}
    owners = {
        "of a ModelRoute": new,
        "of another kind": new | {"ownerReferences": [owner | {"kind": "Node"}]},
    }
    found = {
        (value["kind"], name): place.attempt(
            "create", "--filename=-", input=json.dumps(value | {"metadata": metadata})
        ).stderr
        for value in values
        for name, metadata in owners.items()
    }
    assert {name for (_, name), said in found.items() if not said} == {"of a ModelRoute"}
    assert {name for (_, name), said in found.items() if "belong to a ModelRoute" in said} == {
        "of another kind"
    }


def _translated(api_version: str, kind: str, spec: Manifest) -> Manifest:
    """Return an object of a kind to which routes are translated, without an owner."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "foreign"}, "spec": spec}
