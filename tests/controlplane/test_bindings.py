"""AutoscalingPolicyBindings on a real cluster: pods are scraped, a decision is published, the HPA follows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.binding_bench import WAITING, Bench, bound, follower, policy
from support.command_line import stowplan
from support.manifests import deployment, variant

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-H20"


@pytest.fixture(scope="module")
def _node(control_plane: ControlPlane) -> Iterator[None]:
    """Create a node of a type that no other test uses."""
    create_nodes(control_plane, [KwokNode(name="bound", accelerator=PRODUCT, accelerator_count=8)])
    yield
    control_plane.kubectl("delete", "node", "bound")


@pytest.fixture
def bench(control_plane: ControlPlane, installation: Installation, _node: None, namespace: str) -> Bench:
    """Apply a Deployment with one engine and a policy, and return the namespace with them."""
    made = Bench(control_plane, namespace)
    made.apply(deployment("chat", product=PRODUCT, accelerators=1), policy("waiting"))
    made.wait("deployment/chat", "jsonpath={.status.readyReplicas}=1")
    return made


def test_pod_metrics_lead_to_a_decision_that_the_hpa_applies(bench: Bench) -> None:
    """The load changes `spec.replicas`, and status, events and `explain` name the metric as the reason."""
    bench.apply(bound("chat"), follower("chat"))
    with bench.engines(chat=35):
        bench.until("chat", desiredReplicas=4, TargetsResolved="TargetsFound")
        bench.wait("deployment/chat", "jsonpath={.spec.replicas}=4")

    place = ("--kubeconfig", str(bench.control_plane.kubeconfig), "-n", bench.namespace)
    explained, unknown = stowplan("explain", "aspb/chat", *place), stowplan("explain", "aspb/chatt", *place)
    assert (explained.code, unknown.code) == (0, 1)
    assert "vllm:num_requests_waiting is 35 of 10 per replica, asks for 4 (" in explained.words
    assert "TargetsFound" in explained.words
    assert "bindings in this namespace: chat" in unknown.err
    text = bench.kubectl("describe", "aspb", "chat")
    assert "from 1 to 4 replicas: vllm:num_requests_waiting is 35, 10 per replica, which asks for 4" in text
    assert "Decided" in bench.kubectl("events", "--for=aspb/chat")


def test_replicas_are_kept_if_metrics_or_the_policy_are_missing(bench: Bench) -> None:
    """A missing metric is not a zero; a deleted policy sets a condition, and nothing is published."""
    bench.apply(bound("chat"))
    status = bench.until("chat", MetricsAvailable="MetricsUnavailable", desiredReplicas=1)
    assert status["decision"]["limitedBy"] == ["Metrics"]
    assert bench.row("chat") | {"AGE": ""} == {
        "NAME": "chat", "POLICY": "waiting", "TARGET": "chat", "MIN": "1", "MAX": "6", "CURRENT": "1",
        "DESIRED": "1", "WANTED": "", "READY": "False", "REASON": "MetricsUnavailable",
        "AGE": "",
    }  # fmt: skip

    bench.kubectl("delete", "asp", "waiting")
    status = bench.until("chat", PolicyResolved="PolicyNotFound")
    assert "desiredReplicas" not in status
    bench.wait_for_metric("chat", "it has no decision yet")
    bench.apply(policy("waiting"))
    bench.until("chat", PolicyResolved="PolicyFound", desiredReplicas=1)


def test_the_younger_of_two_objects_with_one_target_yields_and_names_the_older(bench: Bench) -> None:
    """This holds for a second binding and for a VariantAutoscaling, so that replicas do not oscillate."""
    bench.apply(bound("first"))
    bench.until("first", PolicyResolved="PolicyFound")
    warned = bench.told(bound("second"), variant("chat"))

    status = bench.until("second", TargetsResolved="TargetClaimed")
    assert "desiredReplicas" not in status
    assert "first is older" in json.dumps(status["conditions"])
    want = "--for=jsonpath={.status.conditions[?(@.type=='TargetResolved')].reason}=TargetClaimed"
    bench.kubectl("wait", "va/chat", want, "--timeout=40s")
    assert bench.until("first")["desiredReplicas"] == 1
    assert "already scaled by AutoscalingPolicyBinding" in warned


def test_paused_and_advisory_bindings_are_decided_but_not_scaled(bench: Bench) -> None:
    """The annotations of Stowplan apply to bindings as well."""
    bench.apply(bound("chat", annotations={"stowplan.dev/paused": "true"}))
    with bench.engines(chat=35):
        status = bench.until("chat", desiredReplicas=1, MetricsAvailable="MetricsAvailable")
        assert status["decision"]["message"].startswith(
            "paused: the running replicas stay; otherwise from 1 to 4 replicas"
        )
        row = bench.row("chat", "--output=wide")
        told = {
            "WANTED": "4",
            "READY": "True",
            "REASON": "TargetNotScaled",
            "LIMITED BY": "",
            "METRIC": WAITING,
            "VALUE": "35",
        }
        assert row | told | {"PER REPLICA": "10"} == row
        assert row["MESSAGE"] == status["decision"]["message"]
        bench.kubectl("annotate", "aspb", "chat", "stowplan.dev/paused-", "stowplan.dev/advisory=true")
        status = bench.until("chat", Advisory="ObjectAdvisory")
    assert "desiredReplicas" not in status


def test_a_new_leader_continues_the_stabilization_window(bench: Bench, installation: Installation) -> None:
    """The highest recommendation of the last ten minutes limits scaling down after a restart, too."""
    bench.apply(policy("waiting", behavior={"scaleDown": {"period": "0s", "stabilizationWindow": "10m"}}))
    bench.apply(bound("chat"))
    with bench.engines(chat=35):
        bench.until("chat", desiredReplicas=2)
        bench.kubectl("scale", "deploy/chat", "--replicas=4")
        bench.wait("deployment/chat", "jsonpath={.status.readyReplicas}=4")
    with bench.engines(chat=1):
        bench.until("chat", desiredReplicas=4, currentReplicas=4, limitedBy=["StabilizationWindow"])
        installation.processes["controller"].stop(patience_seconds=20.0)
        installation.start_component("controller")
        bench.wait_for_beats(2)
        after = bench.until("chat", desiredReplicas=4)

    assert after["decision"]["limitedBy"] == ["StabilizationWindow"]
    assert after["decision"]["wantedReplicas"] == 1


def test_targets_of_different_capacity_share_a_load(bench: Bench) -> None:
    """Running replicas of the expensive target (capacity 2.5) stay, and the cheap target grows."""
    # No HPA follows the metric, so that the number of replicas is constant during the test.
    bench.apply(deployment("dear", product=PRODUCT, accelerators=1))
    pair = bound("pair", annotations={"stowplan.dev/capacity": "dear=2.5,chat=1"})
    reference = pair["spec"].pop("scalingConfiguration")["target"]["targetRef"]
    pair["spec"]["optimizerConfiguration"] = {
        "costExpansionRatePercent": 100,
        "params": [
            {
                "cost": cost,
                "minReplicas": 0,
                "maxReplicas": 4,
                "target": {"targetRef": reference | {"name": name}},
            }
            for name, cost in (("dear", 20), ("chat", 10))
        ],
    }
    bench.apply(pair)
    bench.wait("deployment/dear", "jsonpath={.status.readyReplicas}=1")
    with bench.engines(chat=0, dear=50):
        status = bench.until("pair", desiredReplicas=4, wantedReplicas=5)
        bench.wait_for_metric("chat", '"value":"3"')

    assert {item["name"]: item["replicas"] for item in status["targets"]} == {"dear": 1, "chat": 3}
    assert (
        "1 of dear, 3 of chat; together in replicas of capacity 1: from 4 to 5 replicas"
        in status["decision"]["message"]
    )


def test_a_target_that_cannot_be_scaled_is_named_in_the_condition(bench: Bench) -> None:
    """The cluster has no scale subresource for a ModelInfer: nothing is decided, and the message says why."""
    lonely = bound("lonely")
    lonely["spec"]["scalingConfiguration"]["target"]["targetRef"] = {"name": "llama"}
    bench.apply(lonely)
    status = bench.until("lonely", TargetsResolved="TargetNotFound")

    assert "desiredReplicas" not in status
    assert "ModelInfer 'llama'" in status["decision"]["message"]
