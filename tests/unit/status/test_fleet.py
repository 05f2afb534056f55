"""The state of a fleet from raw objects: accelerators, models, shortages and problems."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from support.live_objects import NOW, SERVICE_LEVEL, condition, decided, fleet, live, planned, usual_objects
from support.manifests import Manifest, variant

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    MODELS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from controller.commands.plan.terminal import print_lines, terminal
from controller.commands.status.fleet import AcceleratorUse, FleetState, Severity
from controller.commands.status.text import fleet_parts, headline

Objects = dict[Resource, list[Manifest]]

SHORT: dict[str, Any] = {
    "reason": "Shortage", "message": "chat goes short", "unmetPerMille": 340,
    "relief": "+1 free 4-accelerator L4 node",
}  # fmt: skip


def text(state: FleetState, columns: int = 140) -> str:
    """Return the output of the command."""
    return print_lines(fleet_parts(state, columns=columns), terminal(columns))


def test_accelerators_are_counted_by_who_holds_them() -> None:
    """Free ones of a cordoned node are apart; a pod without a node is pending."""
    (use,) = fleet(usual_objects()).accelerators or ()
    assert use == AcceleratorUse(
        accelerator="L4", nodes=2, total=8, models=1, others=2, free=1, unusable=4, pending=1
    )


def test_a_model_has_its_load_replicas_and_cost() -> None:
    """Replicas are ready by pods, requested by the workload, and granted and wanted by the decision."""
    state = fleet(
        usual_objects() | {VARIANT_AUTOSCALINGS: [decided(variant("chat"), serviceLevel=SERVICE_LEVEL)]}
    )
    (model,) = state.models
    (item,) = model.variants
    assert (model.model_id, model.priority, model.requests_per_second) == ("meta/llama-3.1-8b", 10, 4.0)
    assert (item.ready, item.requested, item.granted, item.wanted) == (1, 2, 2, 2)
    assert item.decided == "2026-01-01T11:59:50Z"
    assert (state.cost_per_hour, state.saved_per_hour) == (Decimal("80.0"), None)
    assert not state.problems
    assert "97.9 % in 2 s" in text(state)
    assert "99.1 % in 80 ms" in text(state)


def test_advice_shows_what_following_it_would_save() -> None:
    """The saving is that of all variants."""
    state = fleet(usual_objects() | {VARIANT_AUTOSCALINGS: [decided(variant("chat"), savedPerHour="40.0")]})
    assert state.saved_per_hour == Decimal(40)
    assert headline(state) == "1 model, no problem, 80 per hour, following the advice would save 40 per hour"


def test_a_shortage_is_first_and_names_what_would_help_most() -> None:
    """The most important short model counts."""
    other = decided(
        variant("other", modelID="m"), why="Shortage", **SHORT | {"priority": 20, "relief": "less"}
    )
    objects = usual_objects() | {
        VARIANT_AUTOSCALINGS: [other, decided(variant("chat"), why="Shortage", **SHORT)]
    }
    state = fleet(objects)
    assert [item.model_id for item in state.short][:1] == ["meta/llama-3.1-8b"]
    assert state.helps_most is not None
    assert state.helps_most.relief == "+1 free 4-accelerator L4 node"
    assert "short: ns/meta/llama-3.1-8b: 34 % of what it needs is missing" in text(state)
    assert "would help most: +1 free 4-accelerator L4 node (for ns/meta/llama-3.1-8b, by priority)" in text(
        state
    )


def _without(resource: Resource) -> Callable[[Objects], Objects]:
    return lambda objects: {name: items for name, items in objects.items() if name is not resource}


def _with(resource: Resource, *items: Manifest) -> Callable[[Objects], Objects]:
    return lambda objects: objects | {resource: list(items)}


EXPLAIN = "stowplan explain va/chat -n ns"
BINDING: Manifest = {
    "metadata": {"name": "b"},
    "spec": {},
    "status": {"conditions": [condition("False", "PolicyNotFound", "m")]},
}

PROBLEMS: dict[str, tuple[Callable[[Objects], Objects], dict[str, Any], tuple[Severity, str, str, str]]] = {
    "a variant that is not ready": (
        _with(VARIANT_AUTOSCALINGS, decided(variant("chat"), ready="False", why="MetricsUnavailable")),
        {},
        (Severity.ERROR, "VariantAutoscaling ns/chat", "MetricsUnavailable", EXPLAIN),
    ),
    "a ready one with a problem": (
        _with(VARIANT_AUTOSCALINGS, decided(variant("chat"), why="CostNotAllowed")),
        {},
        (Severity.WARNING, "VariantAutoscaling ns/chat", "CostNotAllowed", EXPLAIN),
    ),
    "one without any decision": (
        _with(VARIANT_AUTOSCALINGS, variant("chat")),
        {},
        (Severity.ERROR, "VariantAutoscaling ns/chat", "NotDecided", EXPLAIN),
    ),
    "a binding that is not ready": (
        _with(AUTOSCALING_POLICY_BINDINGS, BINDING),
        {},
        (
            Severity.ERROR, "AutoscalingPolicyBinding ns/b", "PolicyNotFound",
            "stowplan explain aspb/b -n ns",
        ),
    ),
    "a Model that is not ready": (
        _with(MODELS, BINDING),
        {},
        (Severity.ERROR, "Model ns/b", "PolicyNotFound", "kubectl describe model b -n ns"),
    ),
    "a controller that does not decide": (
        dict,
        {"heartbeat": Heartbeat(time=NOW - timedelta(seconds=200))},
        (
            Severity.CRITICAL, "the controller", "NotDeciding",
            "kubectl -n stowplan-system logs deploy/stowplan-controller",
        ),
    ),
    "no API of external metrics": (
        dict,
        {"api_services": ()},
        (Severity.CRITICAL, "the API of external metrics", "Unavailable", "stowplan doctor"),
    ),
    "an object that planning cannot read": (
        _with(NODES, {"metadata": {"name": "n"}, "spec": {"taints": 1}, "status": {}}),
        {},
        (Severity.WARNING, "1 object", "Unreadable", "kubectl get -o yaml, and stowplan plan -f FILE"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "more", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_every_problem_has_a_command(
    change: Callable[[Objects], Objects], more: dict[str, Any], want: tuple[Severity, str, str, str]
) -> None:
    """It is in the text, too."""
    state = fleet(change(usual_objects()), **more)
    (problem,) = state.problems
    assert (problem.severity, problem.subject, problem.reason, problem.command) == want
    assert want[3] in text(state)


def test_the_worst_problem_comes_first_and_one_of_several_variants_is_listed_once() -> None:
    """The same reason and message, apart from numbers, is one problem."""
    short = [
        decided(variant(name), why="TargetsMissed", message=f"{number} % missed")
        for number, name in enumerate(("a", "b", "c"))
    ]
    state = fleet(usual_objects() | {VARIANT_AUTOSCALINGS: short}, api_services=())
    assert [item.severity for item in state.problems] == [Severity.CRITICAL, Severity.WARNING]
    assert state.problems[1].subject == "VariantAutoscaling ns/a and 2 more"


UNREAD = {
    "nodes": (NODES, lambda state: state.accelerators is None),
    "pods": (PODS, lambda state: [use.free for use in state.accelerators] == [None]),
    "workloads": (DEPLOYMENTS, lambda state: state.models[0].variants[0].requested == 2),
    "variants": (VARIANT_AUTOSCALINGS, lambda state: state.problems[0].reason == "Forbidden"),
    "autoscalers": (HORIZONTAL_POD_AUTOSCALERS, lambda state: len(state.models) == 1),
}


@pytest.mark.parametrize(("resource", "holds"), UNREAD.values(), ids=UNREAD.keys())
def test_what_may_not_be_read_is_named_and_nothing_false_is_shown(
    resource: Resource, holds: Callable[[FleetState], bool]
) -> None:
    """A user may have few rights. What is not known is a question mark, or published."""
    state = fleet(_without(resource)(usual_objects()), forbidden=(resource,))
    assert holds(state)
    shown = text(state)
    assert "not shown: you may not list" in shown
    assert "--verb=list --resource=" in shown
    assert "no model is planned" not in shown


def test_a_variant_without_a_status_beside_one_with_a_status_is_shown() -> None:
    """This is so until the first cycle after it was created."""
    values = [decided(variant("chat")), variant("new")]
    state = fleet(usual_objects() | {VARIANT_AUTOSCALINGS: values})
    assert "NotDecided" in text(state)


@pytest.mark.parametrize("amount", ["1e40", "9" * 27, "-" + "9" * 27, "NaN", "Infinity"])
def test_an_amount_that_is_no_price_is_not_shown(amount: str) -> None:
    """A status can be edited."""
    state = fleet(usual_objects() | {VARIANT_AUTOSCALINGS: [decided(variant("chat"), savedPerHour=amount)]})
    assert state.saved_per_hour is None
    assert text(state)


def test_a_fleet_of_many_short_models_fits_a_screen() -> None:
    """The rest is counted."""
    short = [
        decided(variant(f"v{number}", modelID=f"m{number}"), why="Shortage", **SHORT) for number in range(300)
    ]
    shown = text(fleet(usual_objects() | {VARIANT_AUTOSCALINGS: short}))
    assert "290 more models are short" in shown
    assert len(shown.splitlines()) < 300


def test_an_empty_cluster_says_that_nothing_is_planned() -> None:
    """Also before an installation."""
    state = fleet({NODES: []}, heartbeat=None, api_services=None)
    assert text(state).startswith("no model is planned here: there is no VariantAutoscaling")


NONSENSE: dict[str, Manifest] = {
    "numbers that are text": decided(variant("chat"), grantedReplicas="x"),
    "negative and huge numbers": decided(variant("chat"), grantedReplicas=-1, priority=2**80),
    "a service level of text": decided(variant("chat"), serviceLevel={"ttftTarget": "x", "ttftMissed": {}}),
    "a status that is text": variant("chat") | {"status": {"decision": "x", "conditions": "y"}},
}


@pytest.mark.parametrize("value", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_variant_with_nonsense_is_named_and_the_others_are_shown(value: Manifest) -> None:
    """It may have been stored under another definition."""
    other = decided(variant("other", modelID="m"))
    state = fleet(usual_objects() | {VARIANT_AUTOSCALINGS: [value, other]})
    assert [item.model_id for item in state.models] == ["m"]
    assert "VariantAutoscaling ns/chat" in text(state)


def test_names_with_control_characters_do_not_reach_the_terminal() -> None:
    """Messages are texts of others."""
    value = decided(
        variant("chat", modelID="m\x1b[2J"), ready="False", why="\x1b[31m", message="a\u202eb\x07"
    )
    assert not {"\x1b", "\x07", "\u202e"} & {*text(fleet(usual_objects() | {VARIANT_AUTOSCALINGS: [value]}))}


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_the_text_fits_the_terminal(columns: int) -> None:
    """Columns are dropped, and names wrap."""
    value = decided(variant("chat", modelID="meta/" + "llama-" * 12), serviceLevel=SERVICE_LEVEL)
    lines = text(fleet(usual_objects() | {VARIANT_AUTOSCALINGS: [value]}), columns).splitlines()
    assert max(map(len, lines)) <= columns


def test_settings_of_the_controller_apply() -> None:
    """They are read from its ConfigMap; of several that kustomize left, the newest counts."""
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "namespace": "stowplan-system",
                "name": f"stowplan-controller-config-{10 * letter}",
                "creationTimestamp": created,
                "resourceVersion": "1",
            },
            "data": {"config.yaml": f"planning: {{budgets: [{{name: {letter}, costPerHour: '5'}}]}}"},
        }
        for letter, created in (("b", "2026-01-02T00:00:00Z"), ("c", "2026-01-01T00:00:00Z"))
    ]
    read = live(usual_objects() | {CONFIG_MAPS: []}, settings=maps)
    (budget,) = planned(read).inputs.snapshot.budgets
    assert budget.name == "b"
