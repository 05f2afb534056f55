"""Endpoints of ModelServers: selected pods, ready pods, and reasons why none is ready."""

from __future__ import annotations

import pytest
from support.traffic import pod, server

from apiserver.schema.json import Json
from controller.traffic.endpoints import server_endpoints

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
        (
            1,
            0,
            "ResolvedRefs",
            "NoEndpoints",
            "0 of 1 pods ready: pod a is not scheduled: no room",
        ),
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
