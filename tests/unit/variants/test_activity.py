"""Requests in front of models without replicas: where they are looked for, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from support.gathering import placed, pod
from support.manifests import deployment, variant

from apiserver.kinds.activity import ActivityQuery, ActivitySeries
from apiserver.schema.json import Json
from controller.engines.endpoints import EndpointQuery, Exposures, PickerQueue
from controller.engines.metrics import Series
from controller.engines.records import Idleness
from controller.observe.activity import WatchedModel, watched_models
from controller.observe.declarations import claim_of
from controller.observe.gather import World
from controller.policies.measuring import ExposedMetric, PodExposure
from controller.sizing.records import DEFAULT_SIZING
from controller.variants.activity import ActivityWatch

MODEL = ("ns", "llama")
SERIES = ActivitySeries(labels={"app": "epp"}, port=9090, path="/metrics", series="queue_size")
QUERY = ActivityQuery(expression="sum(queue_size)")


@dataclass
class Front:
    """What is in front of models: the value that each pod and each expression has, or why it has none."""

    values: dict[str, float | str] = field(default_factory=dict)
    pickers: Sequence[Series] | str = ()
    seconds: float = 0.0

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return the values of pods."""
        looks, failures = {}, {}
        for item in questions:
            value = self.values[item.endpoint.pod]
            if isinstance(value, str):
                failures[item.endpoint] = value
            else:
                looks[item.endpoint] = PodExposure(self.seconds, {SERIES.series: ExposedMetric(value=value)})
        return Exposures(looks=looks, failures=failures)

    async def queues(self) -> Sequence[Series] | str:
        """Return the series of endpoint pickers."""
        return self.pickers

    async def evaluate(self, expressions: Collection[str]) -> Mapping[str, Sequence[Series] | str]:
        """Return one series for each expression."""
        values = {item: self.values[item] for item in expressions}
        return {
            item: value if isinstance(value, str) else [Series(name="", labels={}, value=value)]
            for item, value in values.items()
        }


def picker(name: str = "epp-0", **labels: str) -> Json:
    """Return a ready pod with labels, by default those of the series."""
    item = pod(name, owner="", accelerators=0)
    return item | {"metadata": item["metadata"] | {"labels": labels or {"app": "epp"}}}


def watched(
    *, activity: str = "", zero: bool = True, pools: Sequence[Json] = (), has_prometheus: bool = True
) -> Mapping[tuple[str, str], WatchedModel]:
    """Return the sources of one variant that may scale to zero, with an endpoint picker beside it."""
    annotations = {"stowplan.dev/activity": activity} if activity else {}
    value = placed(variant("chat", modelID="llama", minReplicas=0 if zero else 1), annotations=annotations)
    claim = claim_of(value)
    target = placed(deployment("chat", product="A100", accelerators=1))
    target["spec"]["template"]["metadata"] = {"labels": {"app": "chat", "role": "decode"}}
    pods = [picker(), picker("other", app="x")]
    world = World(pods=pods, targets={claim.target: target}, inference_pools=pools)
    return watched_models([claim], world, may_scale_to_zero=False, has_prometheus=has_prometheus)


def pool(name: str, namespace: str = "ns", **labels: str) -> Json:
    """Return an InferencePool that selects pods by labels."""
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"matchLabels": labels}},
    }


def test_an_annotation_names_pods_that_are_looked_up_by_their_labels() -> None:
    """Only ready pods of the namespace with all labels are read."""
    (model,) = watched(activity="app=epp:9090/metrics queue_size").values()
    ((source, pods),) = model.sources

    assert source == SERIES
    assert [item["metadata"]["name"] for item in pods] == ["epp-0"]


def test_an_annotation_names_an_expression() -> None:
    """It replaces the queues of endpoint pickers."""
    assert watched(activity="prometheus: sum(queue_size)") == {MODEL: WatchedModel(sources=((QUERY, ()),))}


def test_without_an_annotation_the_queues_of_endpoint_pickers_are_asked_for() -> None:
    """Those for the model by name, and those of the pools that select its pods."""
    pools = [pool("own", app="chat"), pool("else", app="x"), pool("far", "other", app="chat"), pool("empty")]

    queue = PickerQueue(namespace="ns", model_id="llama", pools=frozenset({"own"}))
    assert watched(pools=pools) == {MODEL: WatchedModel(sources=((queue, ()),))}


COUNTED = {
    "its model": ({"namespace": "ns", "model_name": "llama"}, True),
    "its model behind an alias": ({"namespace": "ns", "model_name": "a", "target_model_name": "llama"}, True),
    "its pool": ({"namespace": "ns", "inference_pool": "own"}, True),
    "another namespace": ({"namespace": "other", "model_name": "llama", "inference_pool": "own"}, False),
    "no namespace": ({"model_name": "llama"}, False),
    "another pool and model": ({"namespace": "ns", "model_name": "b", "inference_pool": "else"}, False),
}


@pytest.mark.parametrize(("labels", "is_counted"), COUNTED.values(), ids=COUNTED.keys())
def test_queues_count_by_namespace_and_model_or_pool(labels: dict[str, str], *, is_counted: bool) -> None:
    """Two namespaces may have pools and models with the same names."""
    queue = PickerQueue(namespace="ns", model_id="llama", pools=frozenset({"own"}))

    assert queue.counts(labels) is is_counted


def test_models_that_keep_a_replica_are_not_watched() -> None:
    """Their engines show requests."""
    assert watched(zero=False) == {}


def test_without_prometheus_and_annotation_there_is_no_source() -> None:
    """The status says so, and what to do."""
    assert watched(has_prometheus=False) == {MODEL: WatchedModel()}


async def awaited(front: Front, *models: WatchedModel, seconds: Sequence[float] = (100.0,)) -> ActivityWatch:
    """Return a watch after cycles at some times."""
    watch = ActivityWatch(front, front, DEFAULT_SIZING)
    for front.seconds in seconds:
        await watch.observe({MODEL: models[0]}, now_seconds=front.seconds)
    return watch


READINGS: Mapping[str, tuple[WatchedModel, float | str, bool]] = {
    "pods with a queue": (WatchedModel(sources=((SERIES, (picker(),)),)), 3.0, True),
    "pods without a queue": (WatchedModel(sources=((SERIES, (picker(),)),)), 0.0, False),
    "pods that do not answer": (WatchedModel(sources=((SERIES, (picker(),)),)), "HTTP 401", False),
    "an expression above 0": (WatchedModel(sources=((QUERY, ()),)), 0.5, True),
    "an expression of 0": (WatchedModel(sources=((QUERY, ()),)), 0.0, False),
    "an expression that fails": (WatchedModel(sources=((QUERY, ()),)), "HTTP 503", False),
    "no source": (WatchedModel(), 0.0, False),
}


@pytest.mark.parametrize(("model", "value", "is_awaited"), READINGS.values(), ids=READINGS.keys())
async def test_requests_that_are_seen_await_a_replica(
    model: WatchedModel, value: float | str, is_awaited: bool
) -> None:
    """Sources that do not answer start nothing."""
    watch = await awaited(Front({"epp-0": value, QUERY.expression: value}), model)
    idleness = watch.idleness(Idleness())

    assert idleness.is_awaited(MODEL, now_seconds=100.0, within_seconds=0.0) is is_awaited


@pytest.mark.parametrize(
    ("value", "idle_seconds"), [(3.0, 0.0), ("HTTP 503", 0.0), (0.0, 90.0)], ids=["seen", "unknown", "none"]
)
async def test_the_last_replica_stays_while_requests_are_seen_or_nobody_answers(
    value: float | str, idle_seconds: float
) -> None:
    """Its engine has been idle for 90 seconds."""
    watch = await awaited(Front({QUERY.expression: value}), WatchedModel(sources=((QUERY, ()),)))
    idleness = watch.idleness(Idleness(last_seconds={MODEL: 10.0}))

    assert idleness.idle_seconds(MODEL, now_seconds=100.0) == idle_seconds


async def test_a_model_is_awaited_for_the_grace_period_after_the_last_request() -> None:
    """Clients that gave up may come back, and an autoscaler needs some time to act."""
    front = Front({QUERY.expression: 1.0})
    watch = await awaited(front, WatchedModel(sources=((QUERY, ()),)))
    front.values[QUERY.expression] = 0.0
    await watch.observe({MODEL: WatchedModel(sources=((QUERY, ()),))}, now_seconds=160.0)
    idleness = watch.idleness(Idleness())

    assert idleness.is_awaited(MODEL, now_seconds=160.0, within_seconds=60.0)
    assert not idleness.is_awaited(MODEL, now_seconds=161.0, within_seconds=60.0)


PROBLEMS: Mapping[str, tuple[WatchedModel, float | str, str]] = {
    "no source": (WatchedModel(), 0.0, "set the annotation stowplan.dev/activity"),
    "no pod": (WatchedModel(sources=((SERIES, ()),)), 0.0, "no ready pod has the labels app=epp"),
    "a silent pod": (WatchedModel(sources=((SERIES, (picker(),)),)), "HTTP 401", "pod epp-0: HTTP 401"),
    "a failing expression": (WatchedModel(sources=((QUERY, ()),)), "HTTP 503", "HTTP 503"),
    "an answer": (WatchedModel(sources=((QUERY, ()),)), 0.0, ""),
}


@pytest.mark.parametrize(("model", "value", "text"), PROBLEMS.values(), ids=PROBLEMS.keys())
async def test_what_prevents_requests_from_being_seen_is_said(
    model: WatchedModel, value: float | str, text: str
) -> None:
    """One sentence, with what to do if something is missing."""
    watch = await awaited(Front({"epp-0": value, QUERY.expression: value}), model)
    problem = watch.problems.get(MODEL, "")

    assert text in problem
    assert bool(problem) is bool(text)


QUEUE = PickerQueue(namespace="ns", model_id="llama", pools=frozenset({"own"}))
QUEUED = "llm_d_epp_flow_control_queue_size"
SATURATION = "llm_d_epp_flow_control_pool_saturation"


def exposed_by_picker(name: str, value: float, **labels: str) -> Series:
    """Return a series of an endpoint picker in the namespace, as Prometheus returns it."""
    return Series(name=name, labels={"__name__": name, "namespace": "ns", **labels}, value=value)


PICKERS: Mapping[str, tuple[Sequence[Series] | str, bool, str]] = {
    "requests wait for the model": ([exposed_by_picker(QUEUED, 2.0, model_name="llama")], True, ""),
    "requests wait for another": (
        [exposed_by_picker(QUEUED, 2.0, model_name="b")],
        False,
        "set the annotation stowplan.dev/activity",
    ),
    "a queue is empty": ([exposed_by_picker(QUEUED, 0.0, model_name="llama")], False, ""),
    "a saturated pool has had no request": (
        [exposed_by_picker(SATURATION, 1.0, inference_pool="own")],
        False,
        "",
    ),
    "there is no endpoint picker": ((), False, "set the annotation stowplan.dev/activity"),
    "Prometheus fails": ("Prometheus: HTTP 503", False, "requests wait for it: Prometheus: HTTP 503"),
}


@pytest.mark.parametrize(("series", "is_awaited", "text"), PICKERS.values(), ids=PICKERS.keys())
async def test_queues_of_endpoint_pickers_await_a_replica(
    series: Sequence[Series] | str, *, is_awaited: bool, text: str
) -> None:
    """A queue appears with its first request: without an endpoint picker, requests can never be seen."""
    watch = await awaited(Front(pickers=series), WatchedModel(sources=((QUEUE, ()),)))

    assert watch.idleness(Idleness()).is_awaited(MODEL, now_seconds=100.0, within_seconds=0.0) is is_awaited
    assert text in watch.problems.get(MODEL, "")
    assert bool(watch.problems) is bool(text)


async def test_a_source_that_fails_affects_no_other_model() -> None:
    """Two models have expressions; one of them fails."""
    other, broken = ("ns", "other"), ActivityQuery(expression="broken")
    front = Front({QUERY.expression: 1.0, "broken": "HTTP 422"})
    watch = ActivityWatch(front, front, DEFAULT_SIZING)
    models = {MODEL: WatchedModel(sources=((QUERY, ()),)), other: WatchedModel(sources=((broken, ()),))}
    await watch.observe(models, now_seconds=100.0)

    assert list(watch.problems) == [other]
    assert watch.idleness(Idleness()).is_awaited(MODEL, now_seconds=100.0, within_seconds=0.0)


async def test_an_expression_without_prometheus_says_what_to_set() -> None:
    """The annotation alone is not enough."""
    watch = ActivityWatch(None, None, DEFAULT_SIZING)
    await watch.observe({MODEL: WatchedModel(sources=((QUERY, ()),))}, now_seconds=1.0)

    assert "set prometheus.url of the controller" in watch.problems[MODEL]
