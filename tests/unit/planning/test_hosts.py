"""Nodes indexed by free accelerators: taking the fullest with room, one by one or many at once."""

from __future__ import annotations

from random import Random

from support.campaign import often

from controller.planning.engine.rooms import Hosts


def _hosts(random: Random) -> tuple[Hosts, Hosts, list[int]]:
    """Return two equal indexes of nodes in three bins, and the free accelerators of each node."""
    free = [random.randint(0, 8) for _ in range(random.randint(1, 8))]
    bins: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for node in range(len(free)):
        bins[random.randrange(3)].append(node)
    return Hosts(free, bins), Hosts(free, bins), free


def test_taking_many_at_once_equals_taking_one_by_one() -> None:
    """They get the same nodes in the same order, and as many of them."""
    for seed in range(often(300)):
        random = Random(seed)
        many, single, _ = _hosts(random)
        for _ in range(4):
            bins = random.sample([0, 1, 2], random.randint(1, 3))
            size, count = random.randint(1, 4), random.randint(1, 7)
            found = [node for node, here in many.take_many(bins, size, count) for _ in range(here)]
            one_by_one = [node for _ in range(count) for node, _ in single.take_many(bins, size, 1)]
            assert found == one_by_one, seed
            assert many.free == single.free, seed


def test_a_limit_on_the_units_of_a_node_passes_the_others_to_the_next_one() -> None:
    """Each unit goes to the fullest node with room that may still get one, as by a scan of all nodes."""
    for seed in range(often(300)):
        random = Random(seed)
        hosts, _, free = _hosts(random)
        most = [random.randint(0, 3) for _ in free]
        size, count, limits = random.randint(1, 3), random.randint(0, 9), tuple(most)
        expected = []
        for _ in range(count):
            room = [(own, node) for node, own in enumerate(free) if own >= size and most[node]]
            if room:
                _, node = min(room)
                expected.append(node)
                free[node], most[node] = free[node] - size, most[node] - 1

        found = hosts.take_many((0, 1, 2), size, count, limits.__getitem__)

        assert [node for node, here in found for _ in range(here)] == expected, seed
        assert hosts.free == free, seed


def test_released_accelerators_can_be_taken_again() -> None:
    """After any sequence of both, the fullest node with room is found, as by a scan of all nodes."""
    for seed in range(often(100)):
        random = Random(seed)
        hosts, _, free = _hosts(random)
        taken: list[tuple[int, int]] = []
        for _ in range(30):
            if taken and random.random() < 0.4:
                node, size = taken.pop(random.randrange(len(taken)))
                hosts.take_on(node, -size)
                free[node] += size
                continue
            size = random.randint(1, 4)
            expected = min(((room, n) for n, room in enumerate(free) if room >= size), default=(0, None))[1]
            assert hosts.fullest((0, 1, 2), size) == expected, seed
            if expected is not None:
                hosts.take_on(expected, size)
                taken.append((expected, size))
                free[expected] -= size
        assert hosts.free == free
