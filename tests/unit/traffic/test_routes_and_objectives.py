"""Conditions of ModelServers, ModelRoutes and InferenceObjectives, and their messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from support.traffic import objective, pod, pool, route, rule, server

from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.models.traffic import traffic_status
from controller.observe.objectives import POOL_GROUPS
from controller.observe.targets import TargetKey, TargetKind
from controller.traffic.endpoints import TrafficCondition, TrafficReason, TrafficStatus, left_alone
from controller.traffic.status import PoolWorld, objective_status, route_status, server_status
from hack.installation.manifests import ROOT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B = {"app": "a"}, {"app": "b"}
SERVERS = {"a": server("a", {"matchLabels": A}), "b": server("b", {"matchLabels": B})}
ONLY_A = [pod("a-1", A), pod("a-2", A)]


def said(found: TrafficStatus) -> Mapping[str, tuple[bool | None, str]]:
    """Return status and reason of each condition."""
    return {str(kind): (holds, str(reason)) for kind, (holds, reason, _) in found.findings.items()}


def of_route(value: Json, *others: Json, pods: list[Json] | None = None) -> TrafficStatus:
    """Return the findings for a route to the servers."""
    return route_status(
        value, servers=SERVERS, pods=ONLY_A if pods is None else pods, routes=[value, *others]
    )


READY = "True EndpointsReady: every target of every rule has ready endpoints"
EMPTY = "no pod of the namespace has app=b; the workload may be scaled to 0"
PROVIDER = {"externalModelProviderName": "far"}
LATER = {"modelName": "chat", "created": "2026-01-02T00:00:00Z"}
ROUTES: Mapping[str, tuple[TrafficStatus, str, str]] = {
    "all targets are ready": (of_route(route("chat", rule("a"))), "Ready", READY),
    "a target with weight 0 is ignored": (of_route(route("chat", rule("a", ("b", 0)))), "Ready", READY),
    "a share without endpoints": (
        of_route(route("chat", rule(("a", 90), ("b", 10)))),
        "Ready",
        f"False TargetsNotReady: spec.rules[0]: 10 % of requests find no endpoint: b: {EMPTY}",
    ),
    "a share of a provider": (
        of_route(route("chat", {"targetModels": [PROVIDER, {"modelServerName": "a"}]})),
        "Ready",
        READY,
    ),
    "a share without endpoints beside a provider": (
        of_route(route("chat", {"targetModels": [PROVIDER, {"modelServerName": "b"}]})),
        "Ready",
        f"False TargetsNotReady: spec.rules[0]: 50 % of requests find no endpoint: b: {EMPTY}",
    ),
    "no endpoints at all": (
        of_route(route("chat", rule("b"))),
        "Ready",
        f"False NoEndpoints: spec.rules[0]: 100 % of requests find no endpoint: b: {EMPTY}",
    ),
    "no rules": (
        of_route(route("chat")),
        "Ready",
        "False NoEndpoints: spec.rules: empty: every request is answered with 404",
    ),
    "a server that is missing": (
        of_route(route("chat", rule("a"), rule("gone", "a"))),
        "ResolvedRefs",
        "False BackendNotFound: spec.rules[1].targetModels[0].modelServerName: ModelServer 'gone' does not"
        " exist in this namespace",
    ),
    "a rule that can never match is a warning in the status": (
        of_route(route("chat", rule("a"), rule("a"))),
        "Accepted",
        "True AcceptedWithWarnings: spec.rules[1]: never used: spec.rules[0] applies to every request",
    ),
    "an older route has the model name": (
        of_route(route("new", rule("a"), **LATER), route("chat", rule("a"))),
        "Accepted",
        "False NameTaken: requests for 'chat' may be routed by the older ModelRoute 'chat': change the name"
        " of one of the two",
    ),
    "a newer route with the model name is ignored": (
        of_route(route("chat", rule("a")), route("new", rule("a"), **LATER)),
        "Accepted",
        "True Accepted: valid",
    ),
    "an invalid object that was stored before the rule existed": (
        of_route(route("chat", rule(("a", 0)))),
        "Accepted",
        "False Invalid: spec.rules[0].targetModels: Invalid value: 0: the sum of `weight` must be greater"
        " than 0",
    ),
}


@pytest.mark.parametrize(("found", "kind", "want"), ROUTES.values(), ids=ROUTES.keys())
def test_conditions_of_a_route_have_the_expected_message(found: TrafficStatus, kind: str, want: str) -> None:
    """The message names the field or the object."""
    holds, reason, text = found.findings[TrafficCondition(kind)]

    assert f"{holds} {reason}: {text}" == want


def test_each_target_of_a_route_is_listed_once() -> None:
    """Targets without endpoints have a message; pods that several servers select are counted once."""
    found = of_route(route("chat", rule("a", "b"), rule("a", "gone")))

    assert found.members == {
        "readyEndpoints": 2,
        "targets": [
            {"modelServerName": "a", "readyEndpoints": 2},
            {"modelServerName": "b", "readyEndpoints": 0, "message": EMPTY},
            {"modelServerName": "gone", "readyEndpoints": 0, "message": "the ModelServer does not exist"},
        ],
    }


CURRENT, FORMER = POOL_GROUPS
POOLS = {CURRENT: {"llama": pool("llama", A)}, FORMER: {"old": pool("old", B, former=True)}}
DEPLOYED = pod("a-1", A | {"pod-template-hash": "h"})
DEPLOYED["metadata"]["ownerReferences"] = [
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat-h", "controller": True}
]
NO_POOL = (False, "PoolNotFound")
OBJECTIVES: Mapping[str, tuple[Json, PoolWorld, tuple[bool, str], tuple[bool, str], str]] = {
    "the model is that of the pods' VariantAutoscaling": (
        objective("urgent"),
        PoolWorld(
            pools=POOLS,
            pods=[DEPLOYED],
            models={TargetKey(TargetKind.DEPLOYMENT, "chat", "chat"): "meta/llama"},
        ),
        (True, "ResolvedRefs"),
        (True, "EndpointsReady"),
        "InferencePool 'llama': app=a selects 1 pod; they serve 'meta/llama'",
    ),
    "the model is that of a ModelServer": (
        objective("urgent"),
        PoolWorld(pools=POOLS, pods=ONLY_A, servers=[server("a", {"matchLabels": A}, model="qwen")]),
        (True, "ResolvedRefs"),
        (True, "EndpointsReady"),
        "InferencePool 'llama': app=a selects 2 pods; they serve 'qwen'",
    ),
    "the model of the pods is unknown": (
        objective("urgent"),
        PoolWorld(pools=POOLS, pods=ONLY_A),
        (True, "ResolvedRefs"),
        (True, "EndpointsReady"),
        "InferencePool 'llama': app=a selects 2 pods; no VariantAutoscaling or ModelServer specifies which"
        " model they serve",
    ),
    "a pool of the former group": (
        objective("urgent", "old", group=FORMER),
        PoolWorld(pools=POOLS, pods=ONLY_A),
        (True, "ResolvedRefs"),
        (False, "NoPods"),
        f"InferencePool 'old': {EMPTY}",
    ),
    "the pool exists in the other group": (
        objective("urgent", "old"),
        PoolWorld(pools=POOLS),
        NO_POOL,
        NO_POOL,
        f"InferencePool 'old' of {CURRENT} does not exist in this namespace; there is one of that name in"
        f" {FORMER}: set poolRef.group",
    ),
    "pools are not served": (
        objective("urgent"),
        PoolWorld(pools={}),
        (False, "PoolsNotServed"),
        (False, "PoolsNotServed"),
        f"InferencePools of {CURRENT} are not served by this cluster: install that definition, or change"
        " poolRef.group",
    ),
    "the reference is not to a pool": (
        objective("urgent", kind="Service", group=""),
        PoolWorld(pools=POOLS),
        (False, "InvalidKind"),
        (False, "InvalidKind"),
        f"spec.poolRef: Service.core is not a pool; specify an InferencePool of {CURRENT}",
    ),
    "there is no spec": (
        {name: item for name, item in objective("urgent").items() if name != "spec"},
        PoolWorld(pools=POOLS),
        NO_POOL,
        NO_POOL,
        "spec: not set: the objective names no pool",
    ),
}


@pytest.mark.parametrize(
    ("value", "world", "resolved", "ready", "text"), OBJECTIVES.values(), ids=OBJECTIVES.keys()
)
def test_conditions_of_an_objective_have_the_expected_message(
    value: Json, world: PoolWorld, resolved: tuple[bool, str], ready: tuple[bool, str], text: str
) -> None:
    """It names the models that the pool serves."""
    found = objective_status(value, world)

    assert said(found)["ResolvedRefs"] == resolved
    assert said(found)["Ready"] == ready
    assert found.findings[TrafficCondition.RESOLVED_REFS][2] == text


STATUSES = {
    "a server": (SERVERS["a"], server_status(SERVERS["a"], ONLY_A)),
    "a route": (route("chat", rule("a", "b")), of_route(route("chat", rule("a", "b")))),
    "an objective": (objective("urgent"), objective_status(objective("urgent"), PoolWorld(pools=POOLS))),
    "a server of another controller": (SERVERS["a"], left_alone("ModelServer", "x.example.com")),
}


@pytest.mark.parametrize(("value", "found"), STATUSES.values(), ids=STATUSES.keys())
def test_a_status_is_valid_and_unchanged_if_the_state_is(value: Json, found: TrafficStatus) -> None:
    """A status computed an hour later from the same state has equal times, too."""
    status = traffic_status(value, found, now=NOW)
    declared = find_version(value["apiVersion"], value["kind"])

    assert declared is not None
    assert validate(declared[1].declaration, {**value, "status": status}) == []
    assert traffic_status({**value, "status": status}, found, now=NOW + timedelta(hours=1)) == status


def test_the_documentation_explains_every_condition_and_reason() -> None:
    """The page is `docs/models.md`."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")

    assert [str(item) for item in (*TrafficCondition, *TrafficReason) if f"`{item}`" not in page] == []
