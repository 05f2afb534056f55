"""Pods of the simulated cluster: start, deletion, placement and cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.observe.pods import is_ready, target_of_pod
from controller.simulation.cluster import VirtualCluster
from controller.simulation.manifests import manifests_of
from controller.simulation.scenario import Outage, Scenario
from controller.simulation.workload import Request


def cluster(scenario: Scenario, requests: list[Request] | None = None) -> VirtualCluster:
    """Return a cluster with the scenario's initial replicas and some requests."""
    return VirtualCluster(scenario, manifests_of(scenario), {"m": requests or []})


def counted(world: VirtualCluster, variant: str) -> tuple[int, int, int]:
    """Return the numbers of requested, ready and starting replicas."""
    counts = world.counts(variant)
    return counts.spec, counts.ready, counts.starting


def test_initial_replicas_are_ready_at_once_and_new_ones_after_the_start_up_time(scenario: Scenario) -> None:
    """The start-up time of 60 s begins with the placement on a node."""
    world = cluster(scenario)
    assert counted(world, "h100") == (1, 1, 0)

    world.advance(15.0)
    world.scale("h100", 3)
    world.advance(74.9)
    assert counted(world, "h100") == (3, 1, 2)
    world.advance(75.0)
    assert counted(world, "h100") == (3, 3, 0)


def test_cost_accrues_from_placement_to_deletion(scenario: Scenario) -> None:
    """A starting replica holds its accelerators; a replica without a node holds none."""
    world = cluster(scenario)
    world.scale("l40s", 6)
    world.advance(100.0)

    assert counted(world, "l40s") == (6, 4, 2)
    assert world.counts("l40s").held == 4
    assert world.replica_seconds == {"h100": 100.0, "l40s": 400.0}

    world.scale("l40s", 0)
    world.advance(200.0)
    assert world.replica_seconds["l40s"] == 400.0


def test_a_waiting_pod_gets_a_node_as_soon_as_one_has_room(scenario: Scenario) -> None:
    """Variants for the same accelerator compete for nodes."""
    rival = replace(scenario.variants[1], name="other", initial_replicas=0)
    world = cluster(replace(scenario, variants=(*scenario.variants, rival)))
    world.scale("l40s", 4)
    world.scale("other", 1)
    world.advance(10.0)
    assert counted(world, "other") == (1, 0, 1)
    assert world.counts("other").held == 0

    world.scale("l40s", 3)
    assert world.counts("other").held == 1
    world.advance(70.0)
    assert counted(world, "other") == (1, 1, 0)


def test_pods_that_are_not_ready_are_deleted_first(scenario: Scenario) -> None:
    """This is the order of a ReplicaSet."""
    world = cluster(scenario)
    world.scale("h100", 3)
    world.advance(5.0)
    world.scale("h100", 1)

    assert counted(world, "h100") == (1, 1, 0)


@pytest.mark.parametrize(
    ("output_tokens", "gone_seconds"),
    [(300, 13.0), (20_000, 41.0)],
    ids=["finishes", "exceeds the grace period"],
)
def test_a_deleted_pod_finishes_its_requests_within_the_grace_period(
    scenario: Scenario, output_tokens: int, gone_seconds: float
) -> None:
    """300 tokens take 2.4 s; 20,000 take minutes, so that request waits for another engine after 30 s."""
    request = Request(request_id=1, arrival_us=10_500_000, prompt_tokens=100, output_tokens=output_tokens)
    world = cluster(replace(scenario, variants=scenario.variants[:1]), [request])
    world.advance(11.0)
    world.scale("h100", 0)
    (pod,) = world.pods.values()
    assert pod.deleted_seconds == 11.0
    assert target_of_pod(pod.manifest(world.manifests.variants["h100"].deployment)) is not None

    world.advance(gone_seconds - 1)
    assert world.pods
    world.advance(gone_seconds)
    assert not world.pods
    assert world.replica_seconds["h100"] == pytest.approx(gone_seconds)
    assert len(world.fleet.finished["m"]) == (1 if output_tokens == 300 else 0)
    assert len(world.fleet.routers["m"].held) == (0 if output_tokens == 300 else 1)


def test_start_up_jitter_is_reproducible(scenario: Scenario) -> None:
    """The same seed gives the same start times, another seed different ones."""

    def moments(seed: int) -> list[float | None]:
        jittery = replace(scenario.variants[0], start_up_jitter_seconds=30.0)
        world = cluster(replace(scenario, variants=(jittery,), seed=seed))
        world.scale("h100", 4)
        return [pod.starts_seconds for pod in world.pods.values()]

    assert moments(1) == moments(1) != moments(2)
    assert all(30 <= (at or 0) <= 90 for at in moments(1)[1:])
    assert min(at or 0 for at in moments(1)[1:]) < 60 < max(at or 0 for at in moments(1)[1:])


def test_pod_manifests_are_as_the_controller_expects_them(scenario: Scenario) -> None:
    """They have conditions and a node."""
    world = cluster(scenario)
    world.scale("h100", 2)
    deployment = world.manifests.variants["h100"].deployment
    first, second = (pod.manifest(deployment) for pod in world.pods_of("h100"))

    assert (is_ready(first), is_ready(second)) == (True, False)
    assert second["spec"]["nodeName"] != first["spec"]["nodeName"]


def test_a_lost_node_takes_its_pods_and_their_replacements_wait_until_it_is_back(scenario: Scenario) -> None:
    """Both H100 nodes are full; one is gone from 100 to 200 s, and the start-up time is 60 s."""
    full = (replace(scenario.variants[0], initial_replicas=8), scenario.variants[1])
    outage = Outage(node="h100-0-1", from_seconds=100.0, to_seconds=200.0)
    world = cluster(replace(scenario, variants=full, outages=(outage,)))

    world.advance(99.0)
    assert counted(world, "h100") == (8, 8, 0)
    world.advance(101.0)
    assert counted(world, "h100") == (8, 4, 4)
    assert [node["metadata"]["name"] for node in world.nodes] == ["h100-0-0", "l40s-1-0", "l40s-1-1"]

    world.advance(259.0)
    assert counted(world, "h100") == (8, 4, 4)
    world.advance(261.0)
    assert counted(world, "h100") == (8, 8, 0)
    assert len(world.nodes) == 4


def test_requests_on_a_lost_node_are_retried_on_another(scenario: Scenario) -> None:
    """The node is lost while the only engine computes; that on the other node then serves the request."""
    single = (replace(scenario.variants[0], initial_replicas=0), scenario.variants[1])
    outage = Outage(node="l40s-1-0", from_seconds=1.0, to_seconds=1000.0)
    asked = Request(request_id=0, arrival_us=0, prompt_tokens=100, output_tokens=100)
    world = cluster(replace(scenario, variants=single, outages=(outage,)), [asked])

    world.advance(100.0)

    (done,) = world.fleet.finished["m"]
    assert done.finish_us == pytest.approx(61e6 + 1.83e6, rel=0.01)
