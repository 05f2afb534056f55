"""Endpoints of ModelServers and ModelRoutes, also with hostile content."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.traffic import pod, route, rule, server

from apiserver.schema.json import Json
from controller.traffic.endpoints import TrafficCondition, server_endpoints
from controller.traffic.status import names_of, route_status, targets_of

UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]
SPLIT = {
    "matchLabels": {"app": "x"},
    "pdGroup": {
        "groupKey": "group",
        "prefillLabels": {"role": "prefill"},
        "decodeLabels": {"role": "decode"},
    },
}
X = {"app": "x"}


def role(name: str, of: str, group: str) -> Json:
    """Return a pod with a role and a group."""
    return pod(name, {"app": "x", "role": of, "group": group})


PLAIN = {"matchLabels": {"app": "x", "tier": "gpu"}}
CASES = {
    "ready pods are counted": (
        {"matchLabels": X},
        [pod("a", X), pod("b", X, is_ready=False), pod("c", {"app": "y"})],
        (2, 1, "ResolvedRefs", "EndpointsReady", "1 of 2 pods ready"),
    ),
    "deleted and failed pods are no endpoints": (
        {"matchLabels": X},
        [pod("a", X, deleting=True), pod("b", X, phase="Failed"), pod("c", X)],
        (1, 1, "ResolvedRefs", "EndpointsReady", "1 of 1 pods ready"),
    ),
    "the reason why none is ready": (
        {"matchLabels": X},
        [pod("a", X, is_ready=False, conditions=UNSCHEDULED)],
        (1, 0, "ResolvedRefs", "NoEndpoints", "0 of 1 pods ready: pod a is not scheduled: no room"),
    ),
    "a label that no pod has": (
        PLAIN,
        [pod("a", X)],
        (0, 0, "NoPods", "NoPods", "no pod of the namespace has tier=gpu; the workload may be scaled to 0"),
    ),
    "labels that no pod has together": (
        PLAIN,
        [pod("a", X), pod("b", {"tier": "gpu"})],
        (0, 0, "NoPods", "NoPods", "no pod of the namespace has all of app=x,tier=gpu"),
    ),
    "a selector without labels selects nothing": (
        {},
        [pod("a", X)],
        (0, 0, "NoPods", "NoPods", "the selector names no label, and so selects no pod"),
    ),
    "prefill and decode of one group": (
        SPLIT,
        [role("p", "prefill", "1"), role("d", "decode", "1"), role("e", "decode", "2")],
        (
            3,
            3,
            "ResolvedRefs",
            "EndpointsReady",
            "prefill: 1 of 1 pods ready; decode: 2 of 2 pods ready; groups by group with both: 1",
        ),
    ),
    "no group has both": (
        SPLIT,
        [role("p", "prefill", "1"), role("d", "decode", "2")],
        (
            2,
            2,
            "ResolvedRefs",
            "NoPairs",
            "prefill: 1 of 1 pods ready; decode: 1 of 1 pods ready, but no value of the label group is on"
            " ready pods of both",
        ),
    ),
    "no decode pod": (
        SPLIT,
        [role("p", "prefill", "1")],
        (
            1,
            1,
            "NoPods",
            "NoPods",
            "prefill: 1 of 1 pods ready; decode: no pod of the namespace has role=decode; the workload may"
            " be scaled to 0",
        ),
    ),
}


@pytest.mark.parametrize(("selector", "pods", "want"), CASES.values(), ids=CASES.keys())
def test_endpoints_are_the_selected_pods(
    selector: Json, pods: list[Json], want: tuple[int, int, str, str, str]
) -> None:
    """Like Kthena's router, the status counts ready pods with all labels."""
    found = server_endpoints(server("s", selector), pods)

    assert (
        found.counts["endpoints"],
        found.counts["readyEndpoints"],
        str(found.resolved[1]),
        str(found.readiness[1]),
        found.readiness[2],
    ) == want
    assert found.readiness[0] is (want[3] == "EndpointsReady")


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
