"""Targets of any kind, planned by their scale subresource and their pods."""

from __future__ import annotations

from typing import Any, cast

import pytest
from support.manifests import variant

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound, Unavailable
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json
from controller.bindings.scale_reader import ScaleReader
from controller.observe.accelerators import accelerators_of
from controller.observe.declarations import claims_of
from controller.observe.gather import World, engine_pods, gather
from controller.observe.pods import target_of_pod
from controller.observe.policies import Policies
from controller.observe.scales import Scale, UnreadableScaleError, scale_of, with_scales
from controller.observe.targets import TargetKey, TargetKind, target_of

API = "serving.example/v1"
KEY = TargetKey(TargetKind.SCALED, "ns", "chat", "serving.example", "Server")
REFERENCE = {"apiVersion": API, "kind": "Server", "name": "chat"}
LATER = REFERENCE | {"apiVersion": "serving.example/v2"}


def scale(replicas: object = 2, selector: object = "app=chat") -> Json:
    """Return a scale subresource."""
    return {"spec": {"replicas": replicas}, "status": {"replicas": 2, "selector": selector}}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(scale(selector=None), "no status.selector", id="no selector"),
        pytest.param(scale(selector=" "), "no status.selector", id="a blank selector"),
        pytest.param(
            scale(selector="app in (a"), "cannot be read: found '', expected", id="an incomplete selector"
        ),
        pytest.param(
            scale(selector=f"app=a,{'b,' * 2050}c"),
            "it has 4107 characters, of at most 4096",
            id="a long selector",
        ),
        pytest.param(scale(-1), "requests -1 replicas", id="a negative number of replicas"),
        pytest.param(scale(True), "requests True replicas", id="replicas that are not a number"),
    ],
)
def test_an_unusable_scale_is_rejected_with_its_reason(value: Json, want: str) -> None:
    """The error names the invalid or missing field."""
    with pytest.raises(UnreadableScaleError, match=want):
        scale_of(value)


def pod(name: str, *, owner: str = "Server", app: str = "chat", accelerators: int = 2, **status: Any) -> Json:
    """Return a pod of a Server, or of a Deployment if `owner` is ReplicaSet."""
    resources = {"requests": {"nvidia.com/gpu": accelerators}}
    reference = {"apiVersion": API, "kind": owner, "name": "chat", "controller": True}
    if owner == "ReplicaSet":
        reference |= {"apiVersion": "apps/v1", "name": "chat-abc"}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "labels": {"app": app, "pod-template-hash": "abc"},
            "ownerReferences": [reference],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "engine", "resources": resources}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]} | status,
    }


def test_a_scaled_target_is_read_from_its_scale_and_one_of_its_pods() -> None:
    """Pods belong to it by its selector; their owner does not matter."""
    found = with_scales({KEY: scale_of(scale(3))}, [pod("a"), pod("b"), pod("c", app="x")], {}, claimed=())

    target = target_of(KEY, found.workloads[KEY])
    assert (target.replicas, target.accelerators_per_replica, target.may_move) == (3, 2, False)
    assert target.labels == ({"app": "chat"},)
    assert "nodeName" not in target.pod_spec
    assert [target_of_pod(item) for item in found.pods] == [KEY, KEY, None]


def test_a_target_at_zero_replicas_uses_the_template_of_its_last_pod() -> None:
    """A target that never had a pod is not planned, and the message contains the remedy."""
    scales: dict[TargetKey, Scale | str] = {KEY: scale_of(scale(0))}
    before = with_scales(scales, [pod("a")], {}, claimed=())
    templates = {key: item["spec"]["template"] for key, item in before.workloads.items()}

    at_zero = with_scales(scales, [], templates, claimed=())
    never = with_scales(scales, [], {}, claimed=())

    assert accelerators_of(target_of(KEY, at_zero.workloads[KEY]).pod_spec) == 2
    assert never.workloads == {}
    assert "scale it to 1 once" in never.unread[KEY]


def test_pods_of_a_planned_deployment_belong_to_no_scaled_target() -> None:
    """Otherwise they would be planned twice."""
    deployment = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")
    pods = [pod("a", owner="ReplicaSet")]

    contested = with_scales({KEY: scale_of(scale())}, pods, {}, claimed={deployment})
    alone = with_scales({KEY: scale_of(scale())}, pods, {}, claimed=())

    assert [target_of_pod(item) for item in contested.pods] == [deployment]
    assert KEY in contested.unread
    assert [target_of_pod(item) for item in alone.pods] == [KEY]


def placed() -> Json:
    """Return a VariantAutoscaling of the scaled target."""
    value = variant("chat", modelID="m", scaleTargetRef=REFERENCE)
    return value | {"metadata": value["metadata"] | {"namespace": "ns", "uid": "u", "generation": 1}}


class Server:
    """A stub API server with one kind and a given response for its scale."""

    def __init__(self, answer: Json | Exception, *, has_scale: bool = True) -> None:
        self.answer = answer
        self.calls: list[str] = []
        names = ["servers", "servers/status", *(["servers/scale"] if has_scale else [])]
        self.resources = [{"name": name, "kind": "Server"} for name in names]

    async def get_path(self, path: str) -> Json:
        """Return the resources of one version of an API group."""
        self.calls.append(path)
        return {"resources": self.resources}

    async def get(self, resource: Resource, name: str, *, namespace: str, subresource: str) -> Json:
        """Return the scale."""
        self.calls.append(resource.path(namespace, name, subresource=subresource))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def reader(server: Server, *, now: list[float] | None = None) -> ScaleReader:
    """Return a scale reader that uses this server."""
    clock = now or [0.0]
    return ScaleReader(
        cast("Cluster", server), lambda: (("ns", REFERENCE),), silent_seconds=600, clock=lambda: clock[0]
    )


async def test_the_scale_is_read_by_the_resource_name_from_discovery() -> None:
    """The discovery response is cached."""
    server = Server(scale())
    reading = reader(server)

    await reading.read(KEY, API)
    await reading.read(KEY, API)

    path = "/apis/serving.example/v1/namespaces/ns/servers/chat/scale"
    assert server.calls == ["/apis/serving.example/v1", path, path]
    assert list(reading.last_scales([pod("a")]).workloads) == [KEY]


@pytest.mark.parametrize(
    ("server", "want"),
    [
        pytest.param(
            Server(Forbidden("no")), "is not allowed to get servers/scale of serving.example", id="forbidden"
        ),
        pytest.param(Server(NotFound("no")), "it does not exist in namespace 'ns'", id="no object"),
        pytest.param(Server(scale(), has_scale=False), "no Server with a scale subresource", id="no scale"),
        pytest.param(Server(Unavailable("no")), "has not been read yet", id="no response yet"),
        pytest.param(Server(scale(selector=None)), "no status.selector", id="no selector"),
    ],
)  # fmt: skip
async def test_a_target_without_a_readable_scale_is_unplanned_with_a_reason(
    server: Server, want: str
) -> None:
    """The message is that of the VariantAutoscaling's condition."""
    reading = reader(server)
    await reading.read(KEY, API)
    found = reading.last_scales([pod("a")])
    world = World(
        autoscalings=[placed()], targets={}, pods=found.pods, nodes=(), autoscalers=(), unread=found.unread
    )

    gathered = gather(
        world, claims_of(world.autoscalings), policies=Policies(), now_seconds=0.0, may_scale_to_zero=False
    )

    assert want in gathered.unplanned["ns", "chat"].message
    assert gathered.unplanned["ns", "chat"].reason == "TargetNotSupported"


async def test_the_last_scale_is_used_for_a_limited_time_if_reading_fails() -> None:
    """After that, the message gives the age of the last successful read."""
    now = [0.0]
    server = Server(scale())
    reading = reader(server, now=now)
    await reading.read(KEY, API)
    server.answer = Unavailable("no")

    for moment, want in ((599.0, {}), (601.0, {KEY: "its scale was last read 601 s ago"})):
        now[0] = moment
        await reading.read(KEY, API)
        assert reading.last_scales([pod("a")]).unread == want


async def test_a_scaled_target_is_planned_with_its_replicas_and_autoscaler() -> None:
    """Its pods are scraped, and the autoscaler may reference another version of its API."""
    reading = reader(Server(scale(2)))
    await reading.read(KEY, API)
    found = reading.last_scales([pod("a"), pod("b")])
    world = World(
        autoscalings=[placed()],
        targets=found.workloads,
        pods=found.pods,
        nodes=(),
        autoscalers=[
            {
                "metadata": {"namespace": "ns", "name": "hpa"},
                "spec": {
                    "scaleTargetRef": REFERENCE | {"apiVersion": "serving.example/v2"},
                    "maxReplicas": 9,
                },
            }
        ],
    )

    gathered = gather(
        world, claims_of(world.autoscalings), policies=Policies(), now_seconds=0.0, may_scale_to_zero=False
    )

    (found_variant,) = gathered.snapshot.variants
    assert (found_variant.current_replicas, found_variant.max_replicas) == (2, 9)
    assert [replica.name for replica in found_variant.replicas] == ["a", "b"]
    assert len(engine_pods(world.pods, claims_of(world.autoscalings))) == 2
    assert gathered.observed["ns", "chat"].unheeded == ""
