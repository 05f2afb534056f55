"""Adapters that engines load at runtime: no restart, and requests only while they are loaded."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from support.models import backend, engine_of, errors_of, loading_backend, model, one, split, worker

from apiserver.schema.json import Json
from controller.engines.exposition import UnreadableMetricsError
from controller.expansion.adapters import (
    AdapterLoading,
    LoaderReport,
    adapter_loading,
    listed_adapters,
    routed_pairs,
)
from controller.expansion.expansion import expand
from controller.models.model import AdapterReader

BUCKET = [{"name": "far", "artifactURL": "s3://bucket/far"}]
SETTINGS = {"enable-lora": "", "max-lora-rank": 16, "lora-target-modules": "all"}
WANTED = {"l4": {"law": "/weights/law"}}
OTHER = {"law": "/weights/other"}


def template(*backends: Json) -> Json:
    """Return the pod template of a Model."""
    found: Json = one(expand(model(*backends)).objects, "Deployment")["spec"]["template"]
    return found


def test_a_change_of_adapters_does_not_change_the_pods() -> None:
    """Only the list in the ConfigMap changes."""
    before, after = loading_backend("law", "tax"), loading_backend("sql", "law")

    assert template(before) == template(after)
    assert set(listed_adapters(one(expand(model(after)).objects, "ConfigMap"))) == {"law", "sql"}
    command = engine_of({"spec": {"template": template(after)}})["command"]
    assert "--enable-lora" in command
    assert "--lora-modules" not in command


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"law": 7}', "[" * 5000 + "]" * 5000])
def test_an_invalid_list_of_adapters_has_no_entries(text: str) -> None:
    """Users of the namespace can write the ConfigMap; the next reconciliation repairs it."""
    assert listed_adapters({"data": {"adapters.json": text}}) == {}


PODS_CHANGE = {
    "loading at runtime is not enabled in the engine": (
        loading_backend("a", env=[]),
        loading_backend("b", env=[]),
    ),
    "an engine on several nodes": (
        loading_backend("a", workers=[worker(pods=2)]),
        loading_backend("b", workers=[worker(pods=2)]),
    ),
    "an engine with several API servers": (
        loading_backend("a", workers=[worker(config={"api-server-count": 2})]),
        loading_backend("b", workers=[worker(config={"api-server-count": 2})]),
    ),
    "SGLang without a maximum size of adapters": (
        loading_backend("a", type="SGLang"),
        loading_backend("b", type="SGLang"),
    ),
    "an adapter in a bucket": (loading_backend("a"), loading_backend("a", loraAdapters=BUCKET)),
    "the first adapter": (loading_backend(), loading_backend("a")),
}


@pytest.mark.parametrize(("before", "after"), PODS_CHANGE.values(), ids=PODS_CHANGE.keys())
def test_engines_are_restarted_if_they_cannot_load_adapters_at_runtime(before: Json, after: Json) -> None:
    """Their pods have the adapters as arguments, or download them before the start."""
    kinds = ("Deployment", "LeaderWorkerSet")
    was, now = (
        [item for item in expand(model(value)).objects if item["kind"] in kinds] for value in (before, after)
    )
    assert was != now


def test_sglang_loads_adapters_at_its_own_paths() -> None:
    """It needs the maximum size of adapters."""
    spec = template(loading_backend("a", type="SGLang", workers=[worker(config=SETTINGS)]))["spec"]
    options = json.loads(spec["containers"][1]["command"][-1])

    assert (options["load"], options["unload"]) == ("/load_lora_adapter", "/unload_lora_adapter")
    assert "--lora-paths" not in spec["containers"][0]["command"]


def test_prefill_and_decode_workers_share_one_list() -> None:
    """Each pod has its own loader."""
    value = loading_backend("a")
    objects = expand(model(split(env=value["env"], loraAdapters=value["loraAdapters"]))).objects

    assert one(objects, "ConfigMap")["metadata"]["name"] == "qwen-split"
    deployments = [item for item in objects if item["kind"] == "Deployment"]
    assert [
        [container["name"] for container in item["spec"]["template"]["spec"]["containers"]]
        for item in deployments
    ] == [["engine", "adapters"]] * 2


def test_a_thousand_adapters_of_a_model_exceed_no_limit_of_an_object() -> None:
    """Each of eight backends has 125, with the longest names and sources."""
    backends = [
        backend(
            f"b{part}",
            loraAdapters=[
                {
                    "name": f"{part}-{rank}-".ljust(63, "x"),
                    "artifactURL": f"hf://{part}/{rank}".ljust(2048, "x"),
                }
                for rank in range(125)
            ],
        )
        for part in range(8)
    ]
    for value in (model(*backends), model(*(item | {"env": loading_backend()["env"]} for item in backends))):
        objects = expand(value).objects
        assert [errors_of(item) for item in objects if errors_of(item)] == []
        assert (
            sum(len(item["spec"]["loraAdapters"]) for item in objects if item["kind"] == "ModelRoute") == 1000
        )
        assert max(len(json.dumps(item)) for item in objects) < 1 << 20


def told(pod: str, loaded: dict[str, str] | None = None, **members: Any) -> LoaderReport:
    """Return the report of a pod's loader."""
    return LoaderReport(pod=pod, backend="l4", loaded=loaded or {}, **members)


STANDS: dict[str, tuple[list[LoaderReport], bool, AdapterLoading]] = {
    "every engine has the adapter": (
        [told("a", WANTED["l4"]), told("b", WANTED["l4"])],
        False,
        AdapterLoading(),
    ),
    "no engine is ready: an engine that becomes ready has loaded the adapter": ([], False, AdapterLoading()),
    "one engine has not loaded the adapter yet": (
        [told("a", WANTED["l4"]), told("b")],
        False,
        AdapterLoading(
            unloaded=frozenset({("l4", "law")}), awaited=("adapter law to be loaded in 1 of 2 pods of l4",)
        ),
    ),
    "one engine lost the adapter: requests continue": (
        [told("a", WANTED["l4"]), told("b")],
        True,
        AdapterLoading(awaited=("adapter law to be loaded in 1 of 2 pods of l4",)),
    ),
    "the engine has another adapter of that name": (
        [told("a", OTHER)],
        False,
        AdapterLoading(
            unloaded=frozenset({("l4", "law")}), awaited=("adapter law to be loaded in 1 of 1 pods of l4",)
        ),
    ),
    "no engine can load the adapter": (
        [told("a", failed={"law": "404"})],
        True,
        AdapterLoading(
            unloaded=frozenset({("l4", "law")}), troubles=("adapter law is not loaded in pod a: 404",)
        ),
    ),
    "the state is unknown: a routed adapter stays routed": (
        [told("a", silent="no answer")],
        True,
        AdapterLoading(troubles=("container adapters of pod a does not report what is loaded: no answer",)),
    ),
    "the state is unknown: a new adapter is not routed": (
        [told("a", silent="no answer")],
        False,
        AdapterLoading(
            unloaded=frozenset({("l4", "law")}),
            troubles=("container adapters of pod a does not report what is loaded: no answer",),
        ),
    ),
}


@pytest.mark.parametrize(("engines", "is_routed", "want"), STANDS.values(), ids=STANDS.keys())
def test_adapters_are_routed_as_engines_have_loaded_them(
    engines: list[LoaderReport], is_routed: bool, want: AdapterLoading
) -> None:
    """A new adapter must be loaded in all engines; a routed one is removed if no engine has it."""
    assert adapter_loading(WANTED, engines, {("l4", "law")} if is_routed else ()) == want


def test_an_adapter_that_is_not_loaded_is_not_routed() -> None:
    """This applies per backend; another backend that has loaded it gets the requests."""
    value = model(loading_backend("law", of="a"), loading_backend("law", of="b"))

    assert routed_pairs(expand(value).objects) == {("a", "law"), ("b", "law")}
    assert routed_pairs(expand(value, unloaded={("a", "law")}).objects) == {("b", "law")}
    assert not one(expand(value, unloaded={("a", "law"), ("b", "law")}).objects, "ModelRoute")["spec"].get(
        "loraAdapters"
    )


class Pods:
    """Responds for pods by name, and records the calls."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return the response of a pod."""
        name = pod["metadata"]["name"]
        self.asked.append(f"{name}:{port}{path}")
        if name not in self.answers:
            raise UnreadableMetricsError("no answer: not in time")
        return self.answers[name]


def pod(name: str, *, restarts: int = 0, is_ready: bool = True) -> Json:
    """Return a pod with a loader."""
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"name": name, "uid": name, "labels": {"stowplan.dev/backend": "l4"}},
        "spec": {"containers": [{"name": "adapters", "ports": [{"containerPort": 8100}]}]},
        "status": {
            "phase": "Running",
            "conditions": [ready],
            "containerStatuses": [{"name": "engine", "restartCount": restarts}],
        },
    }


async def test_a_pod_is_polled_until_it_has_loaded_the_wanted_adapters() -> None:
    """It is polled again if its engine was restarted or other adapters are wanted."""
    page = json.dumps({"loaded": WANTED["l4"], "failed": {}})
    pods = Pods(a=page, b="[]")
    reader, key = AdapterReader(pods), ("chat", "qwen")
    given = [pod("a"), pod("b"), pod("c"), pod("d", is_ready=False)]

    found = await reader.reports(key, WANTED, given)
    assert [item.silent for item in found] == [
        "",
        "the response is not that of a loader",
        "no answer: not in time",
    ]
    pods.answers |= {"b": page, "c": page}
    await reader.reports(key, WANTED, given)
    assert pods.asked == ["a:8100/", "b:8100/", "c:8100/", "b:8100/", "c:8100/"]
    await reader.reports(key, WANTED, given)
    assert len(pods.asked) == 5
    await reader.reports(key, WANTED, [pod("a", restarts=1)])
    await reader.reports(key, {"l4": OTHER}, [pod("a", restarts=1)])
    assert len(pods.asked) == 7


class SlowPods:
    """Pods that do not respond for three seconds each; time passes only then."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self.asked: list[str] = []
        self.open = 0
        self.most_open = 0

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Raise the error of a timeout."""
        self.asked.append(f"{pod['metadata']['name']}:{port}{path}")
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        await asyncio.sleep(0)
        self.now_seconds += 3.0 / self.most_open
        self.open -= 1
        raise UnreadableMetricsError("no answer: not in time")


async def test_silent_pods_take_a_limited_time() -> None:
    """The worker that reads them is then available for other Models. Next time, others come first."""
    pods = SlowPods()
    reader = AdapterReader(pods, seconds=lambda: pods.now_seconds)
    given = [pod(f"p{number}") for number in range(1000)]

    found = await reader.reports(("chat", "qwen"), WANTED, given)
    assert pods.now_seconds < 15.0
    assert pods.most_open == 8
    assert [item.pod for item in found] == [f"p{number}" for number in range(1000)]
    assert found[-1].silent == "it was not read: others took 10 s"

    first = len(pods.asked)
    await reader.reports(("chat", "qwen"), WANTED, [*given, pod("new")])
    assert pods.asked[first] == "new:8100/"


async def test_silent_pods_take_turns() -> None:
    """Otherwise the same ones would take all the time again, and others would never be read."""
    pods = SlowPods()
    reader = AdapterReader(pods, seconds=lambda: pods.now_seconds)
    given = [pod(f"p{number}") for number in range(100)]
    for _ in range(10):
        await reader.reports(("chat", "qwen"), WANTED, given)

    assert {pods.asked.count(f"p{number}:8100/") for number in range(100)} == {3, 4}


def test_many_failing_pods_are_not_all_reported() -> None:
    """A condition has no room for a hundred thousand messages, which would take hundreds of megabytes."""
    wanted = {"l4": {f"a{number}": "/weights/a" for number in range(128)}}
    failed = dict.fromkeys(wanted["l4"], "x" * 300)
    told = [LoaderReport(pod=f"p{number}", backend="l4", failed=failed) for number in range(1000)]
    began = time.process_time()
    found = adapter_loading(wanted, told, ())

    assert time.process_time() - began < 2.0
    assert len(found.troubles) == 3 * 128
