"""ModelRoutes and ModelServers of Kthena's releases, with their definitions, next to Stowplan."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
import yaml
from support.command_line import stowplan
from support.manifests import Manifest, listed
from support.models import model
from support.models_process import models_process
from support.polling import wait_for
from support.watching import Place, conditions_of

from hack.controlplane import ControlPlane
from hack.controlplane.foreign import Definition
from hack.installation import Installation
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.controlplane

NETWORKING, SERVING = "networking.volcano.sh", "networking.serving.volcano.sh"
WORKLOADS = "workload.serving.volcano.sh"
ROUTE, SERVER = f"modelroute.{SERVING}", f"modelserver.{SERVING}"
RELEASED = (Definition.KTHENA_MODEL_ROUTES, Definition.KTHENA_MODEL_SERVERS)
MIGRATED = {
    f"autoscalingpolicies.{WORKLOADS}": Definition.KTHENA_AUTOSCALING_POLICIES,
    f"modelboosters.{WORKLOADS}": Definition.KTHENA_MODEL_BOOSTERS,
}
RELEASED_KINDS = {
    "AutoscalingPolicy": f"{WORKLOADS}/v1alpha1",
    "ModelBooster": f"{WORKLOADS}/v1alpha1",
    "ModelRoute": f"{SERVING}/v1alpha1",
    "ModelServer": f"{SERVING}/v1alpha1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
}
"""The kinds that are migrated to, with their API versions."""

SAMPLES = (
    "autoscalingpolicy",
    "autoscalingpolicybinding",
    "model",
    "modelroute",
    "modelserver",
    "variantautoscaling",
)
MODEL = model()
ACCOUNT = "system:serviceaccount:stowplan-system:stowplan-models"
AVAILABLE = {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}
"""The status that the controller of Deployments would write."""

_numbers = itertools.count(1)


def route(name: str, *targets: Manifest, group: str = SERVING, **spec: object) -> Manifest:
    """Return a ModelRoute for the model of its name."""
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": name},
        "spec": {"modelName": name, "rules": [{"targetModels": list(targets)}], **spec},
    }


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a separate cluster, as definitions are installed and removed."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as started:
        yield started


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Iterator[Installation]:
    """Yield an installation that supports both groups."""
    plane.define(*RELEASED)
    with Installation(plane, components=("kthena-serving",)) as started:
        yield started


@pytest.fixture
def place(plane: ControlPlane, installed: Installation) -> Place:
    """Return a new namespace in a cluster with the definitions of both groups."""
    plane.define(*RELEASED)
    plane.kubectl("apply", "--server-side", "--kustomize", str(ROOT / "manifests/crds/kthena"))
    plane.wait_until_established(f"modelroutes.{NETWORKING}", f"modelservers.{NETWORKING}")
    name = f"kthena-{next(_numbers)}"
    plane.kubectl("create", "namespace", name)
    return Place(plane, name)


def condition(place: Place, what: str, kind: str) -> tuple[str, str]:
    """Return reason and message of a condition."""
    found = conditions_of(place.get(what)).get(kind, {})
    return found.get("reason", ""), found.get("message", "")


def routing(place: Place) -> list[str]:
    """Return the objects of routing of both groups."""
    kinds = ("modelroute", "modelserver", ROUTE, SERVER)
    return [f"{kind}/{name}" for kind in kinds for name in place.names(kind)]


OURS, THEIRS = ["modelroute/qwen", "modelserver/qwen-l4"], [f"{ROUTE}/qwen", f"{SERVER}/qwen-l4"]


def test_what_migrate_writes_for_the_samples_is_admitted(place: Place) -> None:
    """By the definitions of the releases, and nothing is pruned, since unknown fields are errors."""
    place.control_plane.define(*MIGRATED.values())
    place.control_plane.wait_until_established(*MIGRATED)
    paths = [path for name in SAMPLES for path in sorted((ROOT / "manifests/samples" / name).glob("*.yaml"))]
    files = (argument for path in paths for argument in ("-f", str(path)))
    migrated = yaml.safe_load_all(stowplan("migrate", *files, "--to", "released").out)
    values = [
        value for value in migrated if value and RELEASED_KINDS.get(value["kind"]) == value["apiVersion"]
    ]

    assert {value["kind"] for value in values} == {*RELEASED_KINDS}
    place.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", input=listed(*values))


def test_their_kinds_are_admitted_like_ours(place: Place) -> None:
    """Errors have the form of Kubernetes' own, defaults are filled in, and missing servers are named."""
    unused = {"modelServerName": "a", "weight": 0}
    applied = ("apply", f"--namespace={place.namespace}", "--filename=-")
    wrong = json.dumps(route("wrong", unused))
    refused = place.control_plane.kubectl(*applied, input=wrong, check=False)
    right = json.dumps(route("right", {"modelServerName": "a"}, parentRefs=[{"name": "inference"}]))
    missing = "spec.rules[0].targetModels[0].modelServerName: "

    assert refused.stderr.strip() == (
        'The ModelRoute "wrong" is invalid: spec.rules[0].targetModels: Invalid value: 0: the sum of `weight`'
        " must be greater than 0"
    )
    # The webhooks list the ModelServers after they have become ready.
    wait_for(lambda: missing in place.control_plane.kubectl(*applied, input=right).stderr, "a warning")
    stored = place.get(f"{ROUTE}/right")["spec"]
    assert stored["rules"][0]["targetModels"] == [{"modelServerName": "a", "weight": 100}]
    assert stored["parentRefs"] == [
        {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "inference"}
    ]


def test_models_expand_to_the_group_of_the_releases_and_back(place: Place) -> None:
    """With both groups, the controller chooses that of the releases; a set group replaces the objects.

    A policy limits the account to objects of Models, as in the other group.
    """
    with models_process(place.control_plane):
        place.apply(MODEL)
        wait_for(lambda: routing(place) == THEIRS, lambda: f"{THEIRS}, not {routing(place)}")
        wait_for(
            lambda: condition(place, "model/qwen", "Failed")[0] == "NothingFailed", "a Model without failures"
        )
        status = ("--subresource=status", "--type=merge", f"--patch={json.dumps(AVAILABLE)}")
        place.kubectl("patch", "deployment/qwen-l4", *status)
        owners = place.get(f"{ROUTE}/qwen")["metadata"]["ownerReferences"]
        assert [owner["kind"] for owner in owners] == ["Model"]
        stray = json.dumps(route("stray", {"modelServerName": "a"}))
        create = ("create", f"--namespace={place.namespace}", "--filename=-", f"--as={ACCOUNT}")
        refused = place.control_plane.kubectl(*create, input=stray, check=False)
        assert "may not write objects that do not belong to a Model" in refused.stderr

    with models_process(place.control_plane, routingGroup=NETWORKING):
        wait_for(lambda: routing(place) == OURS, lambda: f"{OURS}, not {routing(place)}")


def test_objects_of_both_groups_with_the_same_names_are_both_reported_on(place: Place) -> None:
    """A condition names the one that no release reads; of the other, failures are events."""
    lost = {"modelServerName": "lost"}
    place.apply(route("chat", lost), route("chat", lost, group=NETWORKING), MODEL)

    def reasons() -> set[str]:
        items = json.loads(place.kubectl("get", "events", "--output=json"))["items"]
        about = (item for item in items if item["involvedObject"]["apiVersion"].startswith(SERVING))
        return {item["reason"] for item in about if item["involvedObject"]["name"] == "chat"}

    with models_process(place.control_plane):
        wait_for(lambda: {"BackendNotFound", "NoEndpoints"} <= reasons(), lambda: f"events: {reasons()}")
        wait_for(
            lambda: condition(place, "modelroute/chat", "Accepted")[0] == "AcceptedWithWarnings", "a warning"
        )
        wait_for(lambda: set(THEIRS) <= set(routing(place)), "the objects of the Model")

    assert (
        "Kthena's releases read the one of this name in networking.serving.volcano.sh"
        in (condition(place, "modelroute/chat", "Accepted")[1])
    )
    assert condition(place, "modelroute/chat", "ResolvedRefs")[0] == "BackendNotFound"
    assert "status" not in place.get(f"{ROUTE}/chat")


def test_without_a_group_everything_else_is_created_until_one_is_served(place: Place) -> None:
    """One condition says what is missing. Kthena may be installed at any time."""
    for group in (NETWORKING, SERVING):
        names = [f"customresourcedefinition/{kind}.{group}" for kind in ("modelroutes", "modelservers")]
        place.control_plane.kubectl("delete", *names)
    with models_process(place.control_plane):
        place.apply(MODEL)
        wait_for(lambda: condition(place, "model/qwen", "Failed")[0] == "RequestRefused", "a condition")
        assert condition(place, "model/qwen", "Failed")[1] == (
            "ModelServer qwen-l4: networking.volcano.sh/v1alpha1 is not served by this cluster: install the"
            " definition of ModelServer"
        )
        assert (place.names("deployment"), place.names("service")) == (["qwen-l4"], ["qwen-l4"])

        place.control_plane.define(*RELEASED)
        place.watched(f"{SERVER}/qwen-l4")
        place.watched(f"{ROUTE}/qwen")
        wait_for(
            lambda: condition(place, "model/qwen", "Failed")[0] == "NothingFailed", "a Model without failures"
        )
