"""The example scenario with the targets of policy files: bounds, costs, nodes and warnings."""

from __future__ import annotations

from importlib.resources import files

import pytest

from controller.commands.check.documents import Source
from controller.commands.simulate.policy_file import remarks, with_targets
from controller.commands.simulate.scenario_file import read_scenario
from controller.policies.policy import Binding, PolicyTarget, lone_binding, read_policy
from controller.simulation.policies import PolicyFile
from controller.simulation.scenario import Scenario

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
    priced = PolicyTarget(target=target.target, min_replicas=fewest, max_replicas=most, cost=cost)
    return PolicyFile(policy=POLICY, binding=Binding(policy="p", targets=(priced,)))


@pytest.fixture
def example() -> Scenario:
    """Return the scenario that is simulated if no arguments are given."""
    data = (files("controller.commands.simulate") / "example.yaml").read_bytes()
    found = read_scenario(Source(name="example", data=data)).scenario
    assert found is not None
    return found


FITTED: dict[str, tuple[list[PolicyFile], list[tuple[str, int, int, int, float]], int]] = {
    "no binding": ([BARE], [("llama-8b-h100", 1, 1, 100, 100.0)], 13),
    "a binding without a cost": ([bound("a", 2, 5)], [("a", 2, 2, 5, 100.0)], 4),
    "one target without and one with a cost": (
        [bound("a", 1, 5), bound("b", 1, 5, 7)],
        [("a", 1, 1, 5, 0.0), ("b", 1, 1, 5, 7.0)],
        4,
    ),
    "a binding that may scale to zero, with a cost": ([bound("a", 0, 5, 7)], [("a", 1, 0, 5, 7.0)], 4),
    "one policy without and one with a binding": ([BARE, bound("a", 3, 5)], [("a", 3, 3, 5, 100.0)], 4),
    "two bindings of one target": ([bound("a", 2, 5), bound("a", 1, 9)], [("a", 1, 1, 9, 100.0)], 4),
    "two bindings of two targets": (
        [bound("a", 1, 25), bound("b", 1, 16)],
        [("a", 1, 1, 25, 100.0), ("b", 1, 1, 16, 100.0)],
        6,
    ),
}


@pytest.mark.parametrize(("policies", "variants", "nodes"), FITTED.values(), ids=FITTED)
def test_the_variants_are_the_targets_of_the_policies(
    example: Scenario,
    policies: list[PolicyFile],
    variants: list[tuple[str, int, int, int, float]],
    nodes: int,
) -> None:
    """There are enough nodes for all replicas, and not fewer than in the example."""
    found = with_targets(example, policies)

    assert [
        (item.name, item.initial_replicas, item.min_replicas, item.max_replicas, item.price_per_hour)
        for item in found.variants
    ] == variants
    assert [(item.accelerators, item.count) for item in found.nodes] == [(8, nodes)]
    assert {item.profile for item in found.variants} == {example.variants[0].profile}
    assert {item.accelerator for item in found.variants} == {found.nodes[0].accelerator}


def test_warnings_state_the_assumptions(example: Scenario) -> None:
    """Each is given once; that about zero replicas applies with and without an annotation for activity."""

    def warnings(*policies: PolicyFile) -> list[str]:
        return [text.split(":")[0] for text in remarks(example, policies)]

    assert warnings(bound("a", 1, 5)) == ["there is no scenario"]
    assert warnings(bound("a", 1, 5), BARE) == ["there is no scenario", "a file has no binding"]
    assert list(remarks(example, [bound("a", 0, 5)]))[1:] == [
        "all minReplicas of a binding are 0: requests in front of the replicas are not simulated, so nothing"
        " starts again at 0 replicas"
    ]
