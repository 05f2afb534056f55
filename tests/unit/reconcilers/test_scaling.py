"""What the controller writes where it is to scale itself, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.binding_stage import binding, follower, metadata, optimizer
from support.direct_stage import ANN, DirectStage, written_by_ann
from support.manifests import autoscaler

from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.reconcilers.advisory import Scope
from controller.reconcilers.autoscalingpolicybinding import BindingSettings
from controller.reconcilers.scaling import Ending

DIRECT = Scope(namespaces=frozenset({"ns"}))


def said(stage: DirectStage, name: str = "b") -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    (found,) = [item for item in stage.status(name)["conditions"] if item["type"] == "ScalingActive"]
    return found["status"], found["reason"], found["message"]


async def test_it_scales_up_and_down_and_says_so() -> None:
    """By the load, without any HorizontalPodAutoscaler, and writes nothing where nothing changes."""
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


async def test_to_zero_and_back() -> None:
    """Zero is what a scale does not say, and any demand that is known brings replicas back."""
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
    "a pause": (lambda s: _annotate(s, "stowplan.dev/paused"), "Paused"),
    "advice on the binding": (lambda s: _annotate(s, "stowplan.dev/advisory"), "ObjectAdvisory"),
    "advice on the namespace": (
        lambda s: _advise(s, Scope(namespaces=frozenset({"ns"}))),
        "NamespaceAdvisory",
    ),
    "advice on the cluster": (lambda s: _advise(s, Scope(everywhere=True)), "ClusterAdvisory"),
    "an HPA of other metrics": (lambda s: s.autoscalers.append(_hpa()), "TargetScaledByOther"),
    "an HPA that follows": (lambda s: s.autoscalers.append(follower("a")), "TargetScaledByOther"),
    "an older binding": (_older, "NothingDecided"),
    "no policy": (lambda s: s.policies.clear(), "NothingDecided"),
    "a binding of before the webhooks": (lambda s: s.bindings.update(b=binding()), "WriterUnknown"),
}


@pytest.mark.parametrize(("prepare", "reason"), UNTOUCHED.values(), ids=UNTOUCHED)
async def test_nothing_is_written_by(prepare: Callable[[DirectStage], None], reason: str) -> None:
    """Not even tried, and the condition says why."""
    stage = DirectStage(loads={"a": 20.0})
    prepare(stage)
    await stage.cycle(times=3)

    assert stage.scales == []
    assert said(stage)[:2] == ("False", reason)


async def test_an_hpa_that_follows_goes_on_following() -> None:
    """Until somebody deletes it: to change the mode leaves no target alone."""
    stage = DirectStage(loads={"a": 20.0}, autoscalers=[follower("a")])
    await stage.cycle()
    assert stage.published() == {"a": 4}
    assert "HorizontalPodAutoscaler 'a' scales Deployment 'a'" in said(stage)[2]

    stage.autoscalers.clear()
    await stage.cycle()
    assert stage.scales == ["a: 2 -> 4"]


async def test_elsewhere_nothing_is_written_or_said() -> None:
    """Other namespaces have the mode `published`."""
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
    "a server that answers": ("write a", Unavailable("cut off"), Ending.FAILED, "WriteFailed", "cut off"),
    "the target": ("read a", NotFound("gone"), Ending.FAILED, "WriteFailed", "gone"),
}


@pytest.mark.parametrize(("call", "error", "ending", "reason", "told"), REFUSED.values(), ids=REFUSED)
async def test_what_is_missing_is_told_and_stops_nobody_else(
    call: str, error: ClusterError, ending: Ending, reason: str, told: str
) -> None:
    """Tried anew in each cycle; other bindings are scaled."""
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


async def test_a_missing_right_is_known_before_the_load_comes() -> None:
    """A write without effect is tried until it went well once; then never again."""
    stage = DirectStage(loads={"a": 10.0}, refusals={"write a": Forbidden("no scale")})
    await stage.cycle(times=2)
    assert said(stage)[1] == "ControllerMayNotScale"

    stage.refusals.clear()
    await stage.cycle(times=4)
    assert said(stage)[1] == "ScalesWritten"
    assert stage.scales == ["(a: 2)"]


async def test_who_wrote_the_binding_must_still_be_allowed() -> None:
    """Asked again before each write, whatever admission said once."""
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


async def test_of_several_targets_all_must_be_allowed() -> None:
    """Nothing is done by halves."""
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


async def test_a_scale_that_somebody_writes_meanwhile_is_decided_anew() -> None:
    """Between reading and writing, or since the decision was taken; never overwritten."""
    stage = DirectStage(loads={"a": 20.0})
    stage.meanwhile = lambda: stage.scaled_by_somebody("a", 3)
    assert (await stage.cycle()).scaled == {Ending.CONFLICT: 1}
    assert stage.scales == []

    stage.meanwhile = lambda: None
    await stage.cycle()
    assert stage.scales == ["a: 3 -> 6"]


async def test_who_lost_the_lease_writes_nothing() -> None:
    """Asked right before the write."""
    stage = DirectStage(loads={"a": 20.0}, leads=False)

    assert (await stage.cycle()).scaled == {Ending.NOT_LEADING: 1}
    assert stage.scales == []


async def test_a_binding_that_changed_since_the_decision_is_left_alone() -> None:
    """A pause that our copy does not have yet holds all the same."""
    stage = DirectStage(loads={"a": 20.0})
    stored = written_by_ann(**{"stowplan.dev/paused": "true"})
    original = stage.get

    async def get(resource: object, name: str, **options: object) -> Json:
        return stored if name == "b" else await original(resource, name, **options)

    stage.get = get  # type: ignore[method-assign]
    assert (await stage.cycle()).scaled == {Ending.CONFLICT: 1}
    assert stage.scales == []


async def test_what_is_not_written_down_is_not_done() -> None:
    """The next leader must find the decision in the status, and the history that it went by."""
    stage = DirectStage(
        loads={"a": 20.0, "c": 20.0},
        bindings={"b": written_by_ann(), "other": written_by_ann("other", "c")},
        replicas={"a": 2, "c": 2},
        unwritable="b",
    )
    with pytest.raises(Unavailable):
        await stage.cycle()
    assert stage.scales == ["c: 2 -> 4"]

    stage.unwritable = ""
    outcome = await stage.cycle()
    assert stage.replicas["a"] == 4
    assert outcome.scaled == {Ending.WRITTEN: len(stage.scales)}


async def test_the_next_leader_goes_on_after_a_decision_that_was_not_carried_out() -> None:
    """It decides from what runs; the rate counts from when replicas were asked for, whoever asked."""
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


async def test_another_leader_does_not_change_its_mind_about_a_condition() -> None:
    """It goes by the status until it has tried itself."""
    stage = DirectStage(loads={"a": 10.0}, refusals={"write a": Forbidden("no scale")})
    await stage.cycle(times=2)
    before, count = said(stage), len(stage.written)
    stage.begin()
    await stage.cycle()

    assert said(stage) == before
    assert len(stage.written) == count
