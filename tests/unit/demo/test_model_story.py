"""The Model chapter of the demo: its checks, and what is read from the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from support.models import errors_of

from apiserver.schema.json import Json
from controller.expansion.expansion import expand
from hack.demo import checks, model_story, scenario
from hack.demo.checks import CheckFinding
from hack.demo.engines import profile_of
from hack.demo.model_story import ModelStory
from hack.demo.observation import DemoHistory

BOTH = ("chat-a30", "chat-t4")
SEEN = ModelStory(
    active_seconds=9.0,
    answered={"chat": BOTH, "sql": BOTH},
    replicas=[2, 2, 4, 3],
    lost_seconds=6.0,
    answered_after=("chat-t4",),
)


@pytest.mark.parametrize(
    ("check", "story", "detail"),
    [
        (
            checks.model_becomes_engines,
            SEEN,
            "active after 9 s; answered by chat: chat-a30, chat-t4; sql: chat-a30, chat-t4",
        ),
        (checks.model_scales, SEEN, "chat: 2 -> 4 replicas"),
        (checks.backend_leaves_without_a_gap, SEEN, "gone after 6 s, sql is answered by chat-t4"),
    ],
)
def test_checks_hold_and_state_their_figures(
    check: Callable[[DemoHistory], CheckFinding], story: ModelStory, detail: str
) -> None:
    """The detail contains what was observed."""
    finding = check(DemoHistory(model=story))

    assert finding.holds
    assert finding.detail == detail


@pytest.mark.parametrize(
    ("check", "story"),
    [
        (checks.model_becomes_engines, replace(SEEN, active_seconds=None)),
        (checks.model_becomes_engines, replace(SEEN, answered={"chat": BOTH, "sql": ("chat-t4",)})),
        (checks.model_becomes_engines, replace(SEEN, answered={"chat": BOTH})),
        (checks.model_scales, replace(SEEN, replicas=[2, 2, 1])),
        (checks.backend_leaves_without_a_gap, replace(SEEN, lost_seconds=None)),
        (checks.backend_leaves_without_a_gap, replace(SEEN, gaps=["chat-a30"])),
        (checks.backend_leaves_without_a_gap, replace(SEEN, answered_after=())),
    ],
)
def test_checks_fail_if_one_observation_is_missing(
    check: Callable[[DemoHistory], CheckFinding], story: ModelStory
) -> None:
    """Each case lacks one observation or has a wrong one."""
    assert not check(DemoHistory(model=story)).holds


def pod_of(server: Json, *, is_ready: bool) -> Json:
    """Return a pod that a ModelServer selects."""
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "labels": server["spec"]["workloadSelector"]["matchLabels"]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ],
        },
    }


def test_a_route_to_a_server_without_ready_pods_is_a_gap() -> None:
    """Pods are matched by the servers' selectors; the engines of the expanded sample can be simulated."""
    value = yaml.safe_load(scenario.MODEL.read_text(encoding="utf-8"))
    assert errors_of(value) == []
    objects = [*expand(value).objects]
    servers = [item for item in objects if item["kind"] == "ModelServer"]
    pods = [pod_of(server, is_ready=server is servers[0]) for server in servers]

    for template in (item["spec"]["template"] for item in objects if item["kind"] == "Deployment"):
        assert profile_of({"metadata": {"name": "p"}, "spec": template["spec"]}).model_id == "chat"
    assert model_story.gaps([*objects, *pods]) == [servers[1]["metadata"]["name"]]
    assert model_story.routes(objects) == {name: {"chat", "sql"} for name in reversed(BOTH)}
