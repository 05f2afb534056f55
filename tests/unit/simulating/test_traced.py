"""The example with the targets of policies: their bounds and costs, and room for all of them."""

from __future__ import annotations

from importlib.resources import files

import pytest

from apiserver.checking.sources import Source
from controller.closedloop.bound import PolicyFile
from controller.closedloop.scenario import Scenario
from controller.policies.binding import Binding, BoundTarget, lone_binding
from controller.policies.policy import read_policy
from controller.simulating.scenario_file import read_scenario
from controller.simulating.traced import remarks, with_targets

POLICY = read_policy(
    {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "p"},
        "spec": {"metrics": [{"metricName": "m", "targetValue": 1}]},
    }
)
BARE = PolicyFile(policy=POLICY)


def bound(name: str, fewest: int, most: int, cost: int = 0) -> PolicyFile:
    """Return a policy with a binding of one target."""
    (target,) = lone_binding(name, min_replicas=fewest, max_replicas=most).targets
    priced = BoundTarget(target=target.target, min_replicas=fewest, max_replicas=most, cost=cost)
    return PolicyFile(policy=POLICY, binding=Binding(policy="p", targets=(priced,)))


@pytest.fixture
def example() -> Scenario:
    """Return the scenario that is simulated without arguments."""
    data = (files("controller.simulating") / "example.yaml").read_bytes()
    found = read_scenario(Source(name="example", data=data)).scenario
    assert found is not None
    return found


FITTED: dict[str, tuple[list[PolicyFile], list[tuple[str, int, int, int, float]], int]] = {
    "no binding": ([BARE], [("llama-8b-h100", 1, 1, 100, 100.0)], 13),
    "a binding without a cost": ([bound("a", 2, 5)], [("a", 2, 2, 5, 100.0)], 4),
    "a target without a cost beside one with": (
        [bound("a", 1, 5), bound("b", 1, 5, 7)],
        [("a", 1, 1, 5, 0.0), ("b", 1, 1, 5, 7.0)],
        4,
    ),
    "a binding that may scale to zero, with a cost": ([bound("a", 0, 5, 7)], [("a", 1, 0, 5, 7.0)], 4),
    "a policy without a binding beside one with": ([BARE, bound("a", 3, 5)], [("a", 3, 3, 5, 100.0)], 4),
    "two bindings of one target": ([bound("a", 2, 5), bound("a", 1, 9)], [("a", 1, 1, 9, 100.0)], 4),
    "two bindings of two": (
        [bound("a", 1, 25), bound("b", 1, 16)],
        [("a", 1, 1, 25, 100.0), ("b", 1, 1, 16, 100.0)],
        6,
    ),
}


@pytest.mark.parametrize(("policies", "variants", "nodes"), FITTED.values(), ids=FITTED)
def test_variants_are_the_targets(
    example: Scenario,
    policies: list[PolicyFile],
    variants: list[tuple[str, int, int, int, float]],
    nodes: int,
) -> None:
    """Name, initial, least and most replicas, and price; nodes of 8 accelerators, never fewer than before."""
    found = with_targets(example, policies)

    assert [
        (item.name, item.initial_replicas, item.min_replicas, item.max_replicas, item.price_per_hour)
        for item in found.variants
    ] == variants
    assert [(item.accelerators, item.count) for item in found.nodes] == [(8, nodes)]
    assert {item.profile for item in found.variants} == {example.variants[0].profile}
    assert {item.accelerator for item in found.variants} == {found.nodes[0].accelerator}


ASSUMED = {
    "a binding": ([bound("a", 1, 5)], ["there is no scenario"]),
    "no binding": ([bound("a", 1, 5), BARE], ["there is no scenario", "a file has no binding"]),
    "a binding that may scale to zero": (
        [bound("a", 0, 5)],
        ["there is no scenario", "all minReplicas of a binding are 0"],
    ),
}


@pytest.mark.parametrize(("policies", "told"), ASSUMED.values(), ids=ASSUMED)
def test_what_is_assumed_is_said(example: Scenario, policies: list[PolicyFile], told: list[str]) -> None:
    """Once each."""
    assert [text.split(":")[0] for text in remarks(example, policies)] == told


def test_a_binding_without_an_activity_annotation_is_not_said_to_have_one(example: Scenario) -> None:
    """Why nothing starts again holds for every binding."""
    *_, told = remarks(example, [bound("a", 0, 5)])

    assert told == (
        "all minReplicas of a binding are 0: requests in front of the replicas are not simulated, so nothing"
        " starts again at 0 replicas"
    )
