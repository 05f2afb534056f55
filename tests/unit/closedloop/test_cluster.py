"""The life of pods in the virtual cluster, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.closedloop.cluster import VirtualCluster
from controller.closedloop.manifests import manifests_of
from controller.closedloop.scenario import Scenario
from controller.closedloop.traffic import Traffic
from controller.observe.pods import is_ready, target_of_pod
from controller.simulation.request import Request


def cluster(scenario: Scenario, requests: list[Request] | None = None) -> VirtualCluster:
    """Begin with the scenario's initial replicas and some requests."""
    return VirtualCluster(scenario, manifests_of(scenario), Traffic({"m": requests or []}))


def counted(world: VirtualCluster, variant: str) -> tuple[int, int, int]:
    """Return replicas that are asked for, ready, and starting."""
    counts = world.counts(variant)
    return counts.spec, counts.ready, counts.starting


def test_what_there_is_at_the_beginning_runs_and_what_is_ordered_takes_its_time(scenario: Scenario) -> None:
    """Sixty seconds from the place on a node to the first request."""
    world = cluster(scenario)
    assert counted(world, "h100") == (1, 1, 0)

    world.advance(15.0)
    world.scale("h100", 3)
    world.advance(74.9)
    assert counted(world, "h100") == (3, 1, 2)
    world.advance(75.0)
    assert counted(world, "h100") == (3, 3, 0)


def test_cost_runs_from_the_order_to_the_end(scenario: Scenario) -> None:
    """A replica that starts holds its accelerators, one without a place holds none."""
    world = cluster(scenario)
    world.scale("l40s", 6)
    world.advance(100.0)

    assert counted(world, "l40s") == (6, 4, 2)
    assert world.counts("l40s").held == 4
    assert world.replica_seconds == {"h100": 100.0, "l40s": 400.0}

    world.scale("l40s", 0)
    world.advance(200.0)
    assert world.replica_seconds["l40s"] == 400.0


def test_a_place_that_becomes_free_is_taken_by_who_waits(scenario: Scenario) -> None:
    """Variants of one accelerator compete for its nodes."""
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


def test_who_is_not_ready_goes_first(scenario: Scenario) -> None:
    """As a ReplicaSet deletes."""
    world = cluster(scenario)
    world.scale("h100", 3)
    world.advance(5.0)
    world.scale("h100", 1)

    assert counted(world, "h100") == (1, 1, 0)


@pytest.mark.parametrize(
    ("output_tokens", "gone_seconds"), [(300, 13.0), (20_000, 41.0)], ids=["ends", "grace"]
)
def test_a_pod_that_is_deleted_finishes_what_it_has_within_its_grace(
    scenario: Scenario, output_tokens: int, gone_seconds: float
) -> None:
    """300 tokens take 2.4 s; 20,000 would take minutes, so they start again elsewhere after 30 s."""
    request = Request(request_id=1, arrival_us=10_500_000, prompt_tokens=100, output_tokens=output_tokens)
    world = cluster(replace(scenario, variants=scenario.variants[:1]), [request])
    world.advance(11.0)
    world.scale("h100", 0)
    (pod,) = world.pods.values()
    assert pod.deleted_seconds == 11.0
    assert target_of_pod(pod.manifest(world.manifests.deployments["h100"])) is not None

    world.advance(gone_seconds - 1)
    assert world.pods
    world.advance(gone_seconds)
    assert not world.pods
    assert world.replica_seconds["h100"] == pytest.approx(gone_seconds)
    assert len(world.traffic.finished["m"]) == (1 if output_tokens == 300 else 0)
    assert world.traffic.held("m") == (0 if output_tokens == 300 else 1)


def test_start_up_jitter_is_seeded(scenario: Scenario) -> None:
    """The same seed, the same moments; another one, others."""

    def moments(seed: int) -> list[float | None]:
        jittery = replace(scenario.variants[0], start_up_jitter_seconds=30.0)
        world = cluster(replace(scenario, variants=(jittery,), seed=seed))
        world.scale("h100", 4)
        return [pod.starts_seconds for pod in world.pods.values()]

    assert moments(1) == moments(1) != moments(2)
    assert all(60 <= (at or 0) <= 90 for at in moments(1)[1:])


def test_pods_are_written_as_the_controller_reads_them(scenario: Scenario) -> None:
    """Ready, bound, owned; anew only when something changed."""
    world = cluster(scenario)
    world.scale("h100", 2)
    deployment = world.manifests.deployments["h100"]
    first, second = (pod.manifest(deployment) for pod in world.pods_of("h100"))

    assert (is_ready(first), is_ready(second)) == (True, False)
    assert second["spec"]["nodeName"] != first["spec"]["nodeName"]
    assert world.pods_of("h100")[0].manifest(deployment) is first
