"""The validator compared with a real API server that has the same declarations and no webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from differential.compare import Tally, compare_with_server, name_of
from differential.differences import DIFFERENCES
from differential.dispute import SERVER, UPDATE
from differential.examples import EXAMPLES, compare_example
from differential.fuzz import versions
from differential.generate import cases
from differential.options import ENOUGH, ENOUGH_AT_SERVER, judged_count, judged_numbers
from differential.server import connected
from differential.twins import twin_manifest
from differential.updates import compare_updates, drawn

from apiserver.kinds.registry import find_version
from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

VERSIONS = {name_of(kind, version): (kind, version) for kind, version in versions([])}

OBJECTS_FOR_ONE_STORED = 50

every_version = pytest.mark.parametrize("name", VERSIONS)


@pytest.fixture(scope="module")
def tallies(control_plane: ControlPlane) -> Iterator[list[Tally]]:
    """Collect the results of the tests below, and delete the CRDs after the last of them."""
    counted: list[Tally] = []
    yield counted
    names = [twin_manifest(kind, version)["metadata"]["name"] for kind, version in VERSIONS.values()]
    control_plane.kubectl("delete", "crd", *names, "--ignore-not-found", "--wait=false")


@every_version
async def test_the_server_agrees_on_updates(
    control_plane: ControlPlane, empty_namespace: str, name: str, tallies: list[Tally]
) -> None:
    """This covers immutable fields, and errors of stored objects that an update may keep.

    Half of the stored objects are valid. The twin stays for the tests below: a new definition takes as much
    CPU time of the API server as 200 objects.
    """
    kind, version = VERSIONS[name]
    count = max(1, judged_count() // OBJECTS_FOR_ONE_STORED)
    async with connected(control_plane, empty_namespace) as server:
        updates = (
            *drawn(kind, version, range(count), is_valid=False),
            *drawn(kind, version, range(count, 2 * count), is_valid=True),
        )
        tally = await compare_updates(server, kind, version, updates)

    tallies.append(tally)
    assert not tally.unexplained, tally.report()


@every_version
async def test_the_server_agrees_on_new_objects(
    control_plane: ControlPlane, empty_namespace: str, name: str, tallies: list[Tally]
) -> None:
    """Verdict, paths, reasons and defaults are equal, except for named differences."""
    kind, version = VERSIONS[name]
    async with connected(control_plane, empty_namespace) as server:
        await server.install(kind, version)
        objects = cases(kind, version, judged_numbers(name, ENOUGH_AT_SERVER))
        tally = await compare_with_server(server, kind, version, objects)

    tallies.append(tally)
    assert not tally.unexplained, tally.report()


@pytest.mark.parametrize("name", EXAMPLES)
async def test_a_rare_difference_has_an_example(
    control_plane: ControlPlane, empty_namespace: str, name: str, tallies: list[Tally]
) -> None:
    """A difference that random objects rarely show is tested with a chosen object."""
    example = EXAMPLES[name]
    found = find_version(example.new["apiVersion"], example.new["kind"])
    assert found is not None
    if example.old is not None:  # stored before the twin has its schema
        crd = twin_manifest(*found)["metadata"]["name"]
        control_plane.kubectl("delete", "crd", crd, "--ignore-not-found")
    async with connected(control_plane, empty_namespace) as server:
        tally = await compare_example(server, *found, example)

    tallies.append(tally)
    assert name in tally.explained
    assert not tally.unexplained, tally.report()


@pytest.mark.skipif(judged_count() < ENOUGH, reason="too few objects to meet every difference")
def test_every_named_difference_occurs(tallies: list[Tally]) -> None:
    """A difference that no longer occurs must be removed from the list."""
    if len(tallies) < 2 * len(VERSIONS) + len(EXAMPLES):
        pytest.skip("not every kind was judged in this run")

    hit = set().union(*(tally.explained for tally in tallies))
    assert hit == {item.name for item in DIFFERENCES if item.pair in {SERVER, UPDATE}}
