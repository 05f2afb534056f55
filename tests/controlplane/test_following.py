"""Autoscalers that do not follow a decision are found in conditions, events, explanations and warnings."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from support.command_line import stowplan
from support.manifests import Manifest, autoscaler, deployment, listed, variant
from support.polling import wait_for
from support.watching import Place, conditions_of

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-L40"
PAIR = ("prefill", "decode")
API_SERVICE = "apiservice/v1beta1.external.metrics.k8s.io"
MISTAKES: Mapping[str, tuple[str, Manifest]] = {
    "other": ("TargetScaledByOther", {"metric": {"name": "queue_length"}}),
    "misspelt": ("TargetScaledByOther", {"metric": {"name": "wva_desired_replica"}}),
    "selector": (
        "MetricSelectorDiffers",
        {"metric": {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": "right"}}}},
    ),
    "value": ("MetricTargetDiffers", {"target": {"type": "Value", "value": "1"}}),
}
"""By variant: the reason, and what is different in the metric of its HorizontalPodAutoscaler."""


@pytest.fixture(scope="module")
def _node(control_plane: ControlPlane) -> Iterator[None]:
    create_nodes(control_plane, [KwokNode(name="following", accelerator=PRODUCT, accelerator_count=8)])
    yield
    control_plane.kubectl("delete", "node", "following")


@pytest.fixture
def place(control_plane: ControlPlane, installation: Installation, _node: None, namespace: str) -> Place:
    """Return the namespace of a test."""
    return Place(control_plane, namespace)


def mistaken(name: str, **changes: Manifest) -> Manifest:
    """Return an HPA with changes of its external metric."""
    made: Manifest = copy.deepcopy(autoscaler(name))
    made["spec"]["metrics"][0]["external"] |= changes
    return made


def reason_of(item: Manifest, condition: str) -> str:
    """Return the reason of a condition, or an empty string."""
    return str(conditions_of(item).get(condition, {}).get("reason", ""))


def has_reason(condition: str, reason: str) -> Callable[[Manifest], bool]:
    """Return whether an object has a reason of a condition, as a function."""
    return lambda item: reason_of(item, condition) == reason


def has_event(place: Place, name: str, reason: str) -> bool:
    """Return whether a variant has an event with a reason; they are written after the status."""
    return reason in place.kubectl("events", f"--for=va/{name}")


def test_every_mistake_is_found_where_an_operator_looks(control_plane: ControlPlane, place: Place) -> None:
    """A variant whose HPA is right has none, although its number is read by another one's HPA."""
    names = ("right", *MISTAKES)
    place.apply(
        *(deployment(name, product=PRODUCT, accelerators=1) for name in names),
        autoscaler("right"),
        *(mistaken(name, **changes) for name, (_, changes) in MISTAKES.items()),
    )
    variants = [variant(name, labels={"inference.optimization/acceleratorName": PRODUCT}) for name in names]
    applied = control_plane.kubectl(
        "apply", f"--namespace={place.namespace}", "--filename=-", input=listed(*variants)
    )

    for name, (reason, _) in MISTAKES.items():
        found = place.watched(f"va/{name}", has_reason("TargetResolved", reason))
        assert conditions_of(found)["TargetResolved"]["status"] == "False"
        assert reason_of(found, "DecisionFollowed") == reason
        assert f"HorizontalPodAutoscaler '{name}'" in applied.stderr
        wait_for(partial(has_event, place, name, reason), partial(place.kubectl, "events"))
    rows = {row.split()[0]: row.split() for row in place.kubectl("get", "va", "--output=wide").splitlines()}
    assert all(reason in rows[name] for name, (reason, _) in MISTAKES.items())
    right = place.watched("va/right", lambda item: reason_of(item, "DecisionFollowed") != "")
    assert reason_of(right, "TargetResolved") == "TargetFound"
    assert "HorizontalPodAutoscaler 'right'" not in applied.stderr

    asked = ("-n", place.namespace, "--kubeconfig", str(control_plane.kubeconfig))
    explained = stowplan("explain", "va/value", *asked)
    check = "check: HorizontalPodAutoscaler 'value' reads wva_desired_replicas with a target of type Value"
    assert explained.code == 0
    assert check in explained.words


def test_a_workload_that_contradicts_its_variant_says_so(control_plane: ControlPlane, place: Place) -> None:
    """The declared accelerator is wrong, and two HPAs scale one target; the roles of a pair are planned."""
    names = ("typed", "twice", *PAIR)
    place.apply(
        *(with_role(deployment(name, product=PRODUCT, accelerators=1), name) for name in names),
        *(autoscaler(name) for name in names),
        autoscaler("twice") | {"metadata": {"name": "again"}},
    )
    variants = [
        variant(
            name,
            modelID="pair" if name in PAIR else name,
            accelerator="H100" if name == "typed" else None,
        )
        for name in names
    ]
    variants[0]["metadata"]["annotations"] = {"stowplan.dev/replica": "2"}
    applied = control_plane.kubectl(
        "apply", f"--namespace={place.namespace}", "--filename=-", input=listed(*variants)
    )

    annotated = control_plane.kubectl(
        "annotate", f"--namespace={place.namespace}", "va/typed", "stowplan.dev/pause=true"
    )
    assert "stowplan.dev/replicas meant?" in applied.stderr
    assert "stowplan.dev/paused meant?" in annotated.stderr
    found = place.watched("va/typed", has_reason("AcceleratorResolved", "AcceleratorDiffers"))
    assert found["status"]["desiredOptimizedAlloc"]["accelerator"] == "L40"
    wait_for(partial(has_event, place, "typed", "AcceleratorDiffers"), partial(place.kubectl, "events"))
    place.watched("va/twice", has_reason("TargetResolved", "TargetScaledTwice"))
    for name in PAIR:
        place.watched(f"va/{name}", has_reason("TargetResolved", "TargetFound"))


def with_role(workload: Manifest, name: str) -> Manifest:
    """Return a workload whose pods have the role of its name, if it is one of a disaggregated pair."""
    role = {"llm-d.ai/role": name} if name in PAIR else {}
    workload["spec"]["template"]["metadata"]["labels"] |= role
    return workload


def test_a_variant_whose_metrics_come_from_another_adapter_says_so(
    control_plane: ControlPlane, place: Place
) -> None:
    """The same holds while nothing answers, and it ends when ours answers again."""
    place.apply(
        deployment("chat", product=PRODUCT, accelerators=1),
        variant("chat", labels={"inference.optimization/acceleratorName": PRODUCT}),
        autoscaler("chat"),
    )
    place.watched("va/chat", has_reason("DecisionFollowed", "ReplicasAsDecided"))
    service = json.loads(control_plane.kubectl("get", API_SERVICE, "--output=json").stdout)["spec"]["service"]
    other = service | {"name": "keda-operator-metrics-apiserver"}
    try:
        _serve_by(control_plane, other)
        found = place.watched("va/chat", has_reason("DecisionFollowed", "ExternalMetricsUnavailable"))
        message = conditions_of(found)["DecisionFollowed"]["message"]
        assert f"{service['namespace']}/keda-operator-metrics-apiserver" in message
    finally:
        _serve_by(control_plane, service)
    place.watched("va/chat", has_reason("DecisionFollowed", "ReplicasAsDecided"))


def _serve_by(control_plane: ControlPlane, service: Manifest) -> None:
    patch = json.dumps({"spec": {"service": service}})
    control_plane.kubectl("patch", API_SERVICE, "--type=merge", f"--patch={patch}")


def test_a_disabled_autoscaler_is_no_follower(place: Place) -> None:
    """Something else set the workload to 0 replicas, so nothing starts it."""
    place.apply(
        deployment("chat", product=PRODUCT, accelerators=1, replicas=0),
        variant("chat", labels={"inference.optimization/acceleratorName": PRODUCT}),
        autoscaler("chat"),
    )

    found = place.watched("va/chat", has_reason("DecisionFollowed", "AutoscalerNotActive"))

    assert "scale it to 1" in conditions_of(found)["DecisionFollowed"]["message"]
