"""ModelRoutes and pods that would take much time to evaluate, and content that is not validated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.traffic import pod, route, rule, server

from apiserver.schema.json import Json
from controller.traffic.conditions import TrafficCondition
from controller.traffic.status import names_of, route_status, targets_of

NAMES = [f"s{number:03}" for number in range(256)]
LARGEST = route("chat", *(rule(*NAMES[start : start + 16]) for start in range(0, 256, 16)))


class CountedList(list[Json]):
    """A list that counts how often it is read from its start."""

    reads = 0

    def __iter__(self) -> Iterator[Json]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_route_to_all_pods_of_a_namespace_reads_them_once_for_each_server(*, is_ready: bool) -> None:
    """Each of its ModelServers selects all pods."""
    pods = CountedList(pod(f"p{number}", {"app": "a"}, is_ready=is_ready) for number in range(1000))
    servers = {name: server(name, {"matchLabels": {"app": "a"}}) for name in NAMES}
    found = route_status(LARGEST, servers=servers, pods=pods, routes=[LARGEST])

    assert pods.reads == len(NAMES)
    assert found.members["readyEndpoints"] == (1000 if is_ready else 0)


def test_the_oldest_of_many_namesakes_is_found_by_reading_all_routes_once() -> None:
    """Every route of a namespace is compared with all others."""
    routes = CountedList(
        route(f"r{number}", rule("a"), modelName="same", created=f"2026-01-01T00:00:{number % 60:02}Z")
        for number in range(1, 3000)
    )

    route_status(routes[0], servers={}, pods=[], routes=routes)

    assert routes.reads == 1


@pytest.mark.parametrize(
    "spec",
    [None, {"rules": [{"targetModels": [{"weight": 1}, {"modelServerName": None}]}]}, {"rules": [{}]}],
    ids=["no spec", "no names", "no targets"],
)
def test_a_route_without_names_is_invalid(spec: Json | None) -> None:
    """Definitions of other projects may not require them. An error here would end the watch of all routes."""
    value = route("chat") | {"spec": spec}
    if spec is None:
        del value["spec"]
    found = route_status(value, servers={}, pods=[], routes=[value])

    assert (targets_of(value), names_of(value)) == ((), frozenset())
    assert {str(kind): str(reason) for kind, (_, reason, _) in found.findings.items()}[
        "Accepted"
    ] == "Invalid"


def test_a_target_without_a_name_is_reported_as_such() -> None:
    """Its share of the requests finds no endpoint."""
    value = route("chat", rule("a") | {"targetModels": [{"weight": 1}]})
    found = route_status(value, servers={}, pods=[], routes=[value])

    assert found.findings[TrafficCondition.READY][2] == (
        "spec.rules[0]: 100 % of requests find no endpoint:"
        " a target without modelServerName: the ModelServer does not exist"
    )
