"""Direct scaling: writes of scales, and the reasons for not writing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.binding_stage import binding, follower, metadata, optimizer
from support.direct_stage import ANN, DirectStage, written_by_ann
from support.manifests import autoscaler

from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import BindingSettings
from controller.bindings.scaling import Ending
from controller.variants.advisory import Scope

DIRECT = Scope(namespaces=frozenset({"ns"}))


def said(stage: DirectStage, name: str = "b") -> tuple[str, str, str]:
    """Return status, reason and message of the condition ScalingActive."""
    (found,) = [item for item in stage.status(name)["conditions"] if item["type"] == "ScalingActive"]
    return found["status"], found["reason"], found["message"]


async def test_a_target_is_scaled_up_and_down_with_events() -> None:
    """No HorizontalPodAutoscaler is needed, and nothing is written while the number stays the same."""
    stage = DirectStage(loads={"a": 20.0})
    outcome = await stage.cycle()
    assert outcome.scaled == {Ending.WRITTEN: 1}
    assert stage.scales == ["a: 2 -> 4"]

    stage.loads["a"] = 10.0
    await stage.cycle(times=3)
    assert stage.scales == ["a: 2 -> 4"]
    assert said(stage) == (
        "True",
        "ScalesWritten",
        "the controller writes the scales, with the permissions of user 'ann'",
    )
    stage.loads["a"] = 5.0
    await stage.cycle(times=5)

    assert stage.scales == ["a: 2 -> 4", "a: 4 -> 2"]
    assert stage.notes[0].startswith(
        "Deployment 'a' scaled from 2 to 4 replicas, with the permissions of user 'ann': "
    )
    assert "asks for 4" in stage.notes[0]


async def test_targets_are_scaled_to_zero_and_back() -> None:
    """A scale with zero replicas omits the field; any known demand leads to replicas again."""
    value = optimizer("b", "a", "c", annotations={WRITTEN_BY: record_of(ANN)})
    stage = DirectStage(bindings={"b": value}, replicas={"a": 1, "c": 0}, loads={"a": 0.0})
    await stage.cycle(times=6)
    assert stage.replicas == {"a": 0, "c": 0}

    stage.scaled_by_somebody("c", 1)
    stage.loads["c"] = 30.0
    await stage.cycle()

    assert stage.replicas == {"a": 2, "c": 1}


def _annotate(stage: DirectStage, name: str) -> None:
    stage.bindings["b"] = written_by_ann(**{name: "true"})


def _advise(stage: DirectStage, scope: Scope) -> None:
    stage.settings = BindingSettings(direct=DIRECT, advisory=scope)
    stage.begin()


def _hpa() -> Json:
    return autoscaler("a") | {"metadata": metadata("a", creationTimestamp="2026-01-02T00:00:00Z")}


def _older(stage: DirectStage) -> None:
    older = written_by_ann("older")
    older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    older["spec"]["policyRef"]["name"] = "missing"
    stage.bindings["older"] = older


UNTOUCHED: dict[str, tuple[Callable[[DirectStage], None], str]] = {
    "a paused binding": (lambda s: _annotate(s, "stowplan.dev/paused"), "Paused"),
    "an advisory binding": (lambda s: _annotate(s, "stowplan.dev/advisory"), "ObjectAdvisory"),
    "an advisory namespace": (lambda s: _advise(s, Scope(namespaces=frozenset({"ns"}))), "NamespaceAdvisory"),
    "an advisory cluster": (lambda s: _advise(s, Scope(everywhere=True)), "ClusterAdvisory"),
    "an HPA with other metrics": (lambda s: s.autoscalers.append(_hpa()), "TargetScaledByOther"),
    "an HPA that reads the decision": (lambda s: s.autoscalers.append(follower("a")), "TargetScaledByOther"),
    "an older binding": (_older, "NothingDecided"),
    "no policy": (lambda s: s.policies.clear(), "NothingDecided"),
    "a binding from before the webhooks": (lambda s: s.bindings.update(b=binding()), "WriterUnknown"),
}


@pytest.mark.parametrize(("prepare", "reason"), UNTOUCHED.values(), ids=UNTOUCHED)
async def test_nothing_is_written_if_scaling_is_not_active(
    prepare: Callable[[DirectStage], None], reason: str
) -> None:
    """There is not even an attempt, and the condition gives the reason."""
    stage = DirectStage(loads={"a": 20.0})
    prepare(stage)
    await stage.cycle(times=3)

    assert stage.scales == []
    assert said(stage)[:2] == ("False", reason)


async def test_an_existing_hpa_that_reads_the_decision_keeps_scaling() -> None:
    """The controller takes over when it is deleted, so the target is always scaled by one of them."""
    stage = DirectStage(loads={"a": 20.0}, autoscalers=[follower("a")])
    await stage.cycle()
    assert stage.published() == {"a": 4}
    assert "HorizontalPodAutoscaler 'a' scales Deployment 'a'" in said(stage)[2]

    stage.autoscalers.clear()
    await stage.cycle()
    assert stage.scales == ["a: 2 -> 4"]


async def test_nothing_is_written_in_other_namespaces() -> None:
    """They have the mode `published`, and no condition ScalingActive."""
    stage = DirectStage(
        loads={"a": 20.0}, settings=BindingSettings(direct=Scope(namespaces=frozenset({"x"})))
    )
    await stage.cycle(times=2)

    assert stage.scales == []
    assert stage.reason("TargetsResolved") == "TargetNotScaled"
    assert "ScalingActive" not in {item["type"] for item in stage.status()["conditions"]}


GRANT = (
    "kubectl create rolebinding stowplan-controller-scaling -n ns --clusterrole=stowplan-controller-scaling"
    " --serviceaccount=inference:stowplan-controller"
)
REFUSED: dict[str, tuple[str, ClusterError, Ending, str, str]] = {
    "the permission to check access": (
        "review",
        Forbidden("no reviews"),
        Ending.FORBIDDEN,
        "ControllerMayNotScale",
        "kubectl apply --server-side --field-manager=stowplan -k manifests/scaling",
    ),
    "the right to read a scale": (
        "read a",
        Forbidden("no scale"),
        Ending.FORBIDDEN,
        "ControllerMayNotScale",
        GRANT,
    ),
    "the right to write a scale": (
        "write a",
        Forbidden("no scale"),
        Ending.FORBIDDEN,
        "ControllerMayNotScale",
        GRANT,
    ),
    "a response of the server": ("write a", Unavailable("cut off"), Ending.FAILED, "WriteFailed", "cut off"),
    "the target": ("read a", NotFound("gone"), Ending.FAILED, "WriteFailed", "gone"),
}


@pytest.mark.parametrize(("call", "error", "ending", "reason", "told"), REFUSED.values(), ids=REFUSED)
async def test_what_is_missing_is_named_and_affects_no_other_binding(
    call: str, error: ClusterError, ending: Ending, reason: str, told: str
) -> None:
    """Each cycle retries, and other bindings are scaled."""
    stage = DirectStage(
        loads={"a": 20.0, "c": 20.0},
        bindings={"b": written_by_ann(), "other": written_by_ann("other", "c")},
        replicas={"a": 2, "c": 2},
        refusals={call: error},
    )
    outcome = await stage.cycle()
    assert outcome.scaled[ending] >= 1
    await stage.cycle()
    assert said(stage)[:2] == ("False", reason)
    assert told in said(stage)[2]
    assert stage.replicas["a"] == 2
    assert (stage.replicas["c"] > 2) is (call != "review")

    stage.refusals.clear()
    await stage.cycle(times=2)
    assert stage.replicas["a"] > 2
    assert said(stage)[0] == "True"


async def test_a_missing_permission_is_detected_before_the_load_changes() -> None:
    """A dry run is repeated until it has succeeded once."""
    stage = DirectStage(loads={"a": 10.0}, refusals={"write a": Forbidden("no scale")})
    await stage.cycle(times=2)
    assert said(stage)[1] == "ControllerMayNotScale"

    stage.refusals.clear()
    await stage.cycle(times=4)
    assert said(stage)[1] == "ScalesWritten"
    assert stage.scales == ["(a: 2)"]


async def test_the_writer_of_the_binding_must_still_be_allowed_to_scale() -> None:
    """The permission is checked before each write, whatever the result at admission was."""
    stage = DirectStage(loads={"a": 20.0}, may_scale=set())
    assert (await stage.cycle()).scaled == {Ending.REFUSED: 1}
    await stage.cycle()
    assert said(stage)[:2] == ("False", "WriterMayNotScale")
    assert "user 'ann', who wrote the binding, cannot update deployments/scale of 'a'" in said(stage)[2]

    stage.may_scale = {("ann", "a")}
    await stage.cycle()
    assert stage.scales == ["a: 2 -> 4"]
    stage.may_scale, stage.loads["a"] = set(), 20.0
    await stage.cycle(times=2)
    assert stage.scales == ["a: 2 -> 4"]
    assert said(stage)[1] == "WriterMayNotScale"


async def test_the_writer_must_be_allowed_to_scale_all_targets() -> None:
    """Otherwise none of them is scaled."""
    value = optimizer("b", "a", "c", annotations={WRITTEN_BY: record_of(ANN)})
    stage = DirectStage(
        bindings={"b": value},
        replicas={"a": 9, "c": 1},
        loads={"a": 20.0, "c": 20.0},
        may_scale={("ann", "c")},
    )
    await stage.cycle(times=2)

    assert stage.scales == []
    assert said(stage)[1] == "WriterMayNotScale"


async def test_a_scale_that_another_client_changes_is_decided_again() -> None:
    """It is not overwritten, whether it changed since the decision or between reading and writing."""
    stage = DirectStage(loads={"a": 20.0})
    stage.meanwhile = lambda: stage.scaled_by_somebody("a", 3)
    assert (await stage.cycle()).scaled == {Ending.CONFLICT: 1}
    assert stage.scales == []

    stage.meanwhile = lambda: None
    await stage.cycle()
    assert stage.scales == ["a: 3 -> 6"]


async def test_nothing_is_written_after_the_lease_was_lost() -> None:
    """Leadership is checked right before the write."""
    stage = DirectStage(loads={"a": 20.0}, leads=False)

    assert (await stage.cycle()).scaled == {Ending.NOT_LEADING: 1}
    assert stage.scales == []


async def test_a_binding_that_changed_since_the_decision_is_not_scaled() -> None:
    """A pause takes effect even if the cache does not have it yet."""
    stage = DirectStage(loads={"a": 20.0})
    stored = written_by_ann(**{"stowplan.dev/paused": "true"})
    original = stage.get

    async def get(resource: object, name: str, **options: object) -> Json:
        return stored if name == "b" else await original(resource, name, **options)

    stage.get = get  # type: ignore[method-assign]
    assert (await stage.cycle()).scaled == {Ending.CONFLICT: 1}
    assert stage.scales == []


async def test_a_decision_is_carried_out_only_after_its_status_was_written() -> None:
    """The next leader must find the decision and its history in the status."""
    stage = DirectStage(
        loads={"a": 20.0, "c": 20.0},
        bindings={"b": written_by_ann(), "other": written_by_ann("other", "c")},
        replicas={"a": 2, "c": 2},
        unwritable="b",
    )
    outcome = await stage.cycle()
    assert stage.scales == ["c: 2 -> 4"]
    assert outcome.scaled == {Ending.WRITTEN: 1}

    stage.unwritable = ""
    outcome = await stage.cycle()
    assert stage.replicas["a"] == 4
    assert outcome.scaled == {Ending.WRITTEN: len(stage.scales) - 1}


async def test_the_next_leader_continues_after_a_decision_that_was_not_carried_out() -> None:
    """It starts from the running replicas; the rate limit counts replicas since they were requested."""
    slow = {
        "scaleUp": {"stablePolicy": {"period": "60s", "instances": 1, "percent": 0, "selectPolicy": "Or"}}
    }
    stage = DirectStage(loads={"a": 20.0}, leads=False)
    stage.policies[0] = replace_behavior(stage.policies[0], slow)
    await stage.cycle()
    assert (stage.status()["desiredReplicas"], stage.replicas["a"]) == (3, 2)

    stage.leads = True
    stage.begin()
    await stage.cycle(times=2)
    assert stage.scales == ["a: 2 -> 3"]
    stage.begin()
    await stage.cycle()
    assert stage.scales == ["a: 2 -> 3", "(a: 3)"]
    await stage.cycle(times=2)
    assert stage.scales == ["a: 2 -> 3", "(a: 3)", "a: 3 -> 4"]


def replace_behavior(policy: Json, behavior: Json) -> Json:
    """Return a policy with another behaviour."""
    return policy | {"spec": policy["spec"] | {"behavior": behavior}}


async def test_a_new_leader_keeps_a_condition_until_its_own_attempt() -> None:
    """Before that it uses the condition in the status."""
    stage = DirectStage(loads={"a": 10.0}, refusals={"write a": Forbidden("no scale")})
    await stage.cycle(times=2)
    before, count = said(stage), len(stage.written)
    stage.begin()
    await stage.cycle()

    assert said(stage) == before
    assert len(stage.written) == count
