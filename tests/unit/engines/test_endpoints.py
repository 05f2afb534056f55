"""Scraping of metrics endpoints that bindings name, and Prometheus as an alternative source."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from support.served import LOOPBACK, served

from apiserver.schema.json import Json
from controller.engines.endpoints import Endpoint, exposed_in, exposed_series, question, series_names
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.prometheus import PrometheusSource
from controller.engines.scraping import Scraper
from controller.policies.measuring import ExposedMetric

TEXT = """\
# HELP queue Requests.
# TYPE queue gauge
queue{engine="0"} 3
queue{engine="1"} 4
# TYPE done counter
done_total 12
unrelated{a="b
"""
NAMES = ("queue", "done_total", "missing")
NOW = 5000.0
PATH = "/custom/metrics"


def pod(address: str = "127.0.0.1", *, name: str = "p", **spec: object) -> Json:
    """Return a pod without a declared port."""
    return {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"containers": [{}], **spec},
        "status": {"podIP": address},
    }


def scraper(*, limit_bytes: int = 1 << 16) -> Scraper:
    """Return a scraper whose only allowed network is loopback."""
    return Scraper(replace(LOOPBACK, limit_bytes=limit_bytes, concurrency=4), clock=lambda: NOW)


async def _text(_: web.Request) -> web.StreamResponse:
    return web.Response(text=TEXT)


async def test_an_endpoint_that_several_bindings_name_is_requested_once() -> None:
    """Each binding still gets the metrics that it names."""
    count = 0

    async def counting(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        return await _text(request)

    async with served(counting, path=PATH) as port, scraper() as asking:
        found = await asking.expose([question(pod(), port=port, path=PATH, names=[name]) for name in NAMES])

    (look,) = found.looks.values()
    assert (count, look.seconds) == (1, NOW)
    assert look.exposed == {
        "queue": ExposedMetric(value=7),
        "done_total": ExposedMetric(value=12, is_counter=True),
    }


async def _redirect(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


async def _endless(_: web.Request) -> web.StreamResponse:
    return web.Response(text="x" * 200_000)


async def _garbage(_: web.Request) -> web.StreamResponse:
    return web.Response(text="queue{ 3\n")


async def _nameless_label(_: web.Request) -> web.StreamResponse:
    return web.Response(text='queue{, ="x"} 1\n')


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (_redirect, "HTTP 302"),
        (_endless, "bytes"),
        (_garbage, "not a Prometheus exposition"),
        (_nameless_label, "not a Prometheus exposition"),
    ],
    ids=["a redirect", "a response over the limit", "invalid text", "a label without a name"],
)
async def test_an_invalid_response_fails_with_its_reason_and_affects_no_other_pod(
    handler: Handler, why: str
) -> None:
    """A valid endpoint of another pod is still read."""
    async with served(handler, path=PATH) as bad, served(_text, path=PATH) as good, scraper() as asking:
        found = await asking.expose(
            [
                question(pod(), port=bad, path=PATH, names=NAMES),
                question(pod(name="q"), port=good, path=PATH, names=NAMES),
            ]
        )

    assert list(found.looks) == [Endpoint("ns", "q", good, PATH)]
    assert why in found.failures[Endpoint("ns", "p", bad, PATH)]


@pytest.mark.parametrize(
    "value",
    [pod("169.254.169.254"), pod("10.0.0.1"), pod("evil.example"), pod(""), pod(hostNetwork=True)],
    ids=["link-local", "another network", "a host name", "no address", "the node's network"],
)
async def test_only_addresses_within_the_pod_networks_are_requested(value: Json) -> None:
    """Whatever a binding contains, the request goes to a pod's address or is not sent."""
    async with scraper() as asking:
        found = await asking.expose([question(value, port=80, path="/", names=NAMES)])

    assert len(found.failures) == 1
    assert not found.looks


def test_lines_of_unrequested_series_are_not_parsed() -> None:
    """An invalid line of another series does no harm."""
    assert exposed_in(TEXT, ["queue"]) == {"queue": ExposedMetric(value=7)}
    with pytest.raises(UnreadableMetricsError):
        exposed_in(TEXT, ["unrelated"])


MATCHED = {
    "one label": ('queue{engine="1"}', ExposedMetric(value=4)),
    "a label that no series has": ('queue{model="x"}', None),
    "all series": ("queue", ExposedMetric(value=7)),
    "a histogram": ('ttft{model="a"}', ExposedMetric(buckets={0.5: 1.0, float("inf"): 2.0})),
}
LABELLED = """\
# TYPE queue gauge
queue{engine="0"} 3
queue{engine="1"} 4
# TYPE ttft histogram
ttft_bucket{le="0.5",model="a"} 1
ttft_bucket{le="+Inf",model="a"} 2
ttft_bucket{le="0.5",model="b"} 10
ttft_bucket{le="+Inf",model="b"} 20
"""


@pytest.mark.parametrize(("wanted", "want"), MATCHED.values(), ids=MATCHED.keys())
def test_label_matchers_select_series(wanted: str, want: ExposedMetric | None) -> None:
    """A router may export series of many models; metric types may be given or not."""
    series = [
        Series(name=name, labels=dict(re.findall(r'(\w+)="([^"]*)"', labels)), value=float(value))
        for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (.*)$", LABELLED, flags=re.MULTILINE)
    ]

    assert exposed_in(LABELLED, [wanted]).get(wanted) == want
    assert exposed_series(series, [wanted]).get(wanted) == want
    assert series_names([wanted, wanted]) == [
        wanted.split("{", maxsplit=1)[0],
        f"{wanted.split('{', maxsplit=1)[0]}_bucket",
    ]


def test_metric_types_are_inferred_from_series_names_if_none_are_given() -> None:
    """Prometheus returns series without types."""
    series = [
        Series(name="queue", labels={"engine": "0"}, value=3.0),
        Series(name="done_total", labels={}, value=12.0),
        Series(name="ttft_bucket", labels={"le": "0.5"}, value=1.0),
        Series(name="ttft_bucket", labels={"le": "+Inf"}, value=2.0),
    ]

    assert exposed_series(series, ["queue", "done_total", "ttft"]) == {
        "queue": ExposedMetric(value=3),
        "done_total": ExposedMetric(value=12, is_counter=True),
        "ttft": ExposedMetric(buckets={0.5: 1.0, float("inf"): 2.0}),
    }
    assert series_names(["queue", 'x"} or vector(1) #']) == ["queue", "queue_bucket"]


def test_a_metric_named_only_by_a_suffix_does_not_affect_others() -> None:
    """Its own value is not specified here."""
    series = [Series(name="_total", labels={}, value=12.0), Series(name="queue", labels={}, value=3.0)]

    found = exposed_series(series, ["_total", "queue"])

    assert found["queue"] == ExposedMetric(value=3)


async def test_prometheus_is_queried_for_the_metric_names_of_policies() -> None:
    """The time of a value is that of its scrape; a pod without series in Prometheus is a failure."""
    queries = []

    async def answer(request: web.Request) -> web.StreamResponse:
        query = str((await request.post())["query"])
        queries.append(query)
        labels = {"namespace": "ns", "pod": "p"}
        name: dict[str, Any] = {} if query.startswith("timestamp(") else {"__name__": "queue"}
        value = "993" if query.startswith("timestamp(") else "7"
        result = [{"metric": labels | name, "value": [1000.0, value]}]
        return web.Response(text=json.dumps({"data": {"result": result}}))

    async with (
        served(answer, path="/api/v1/query") as port,
        PrometheusSource(f"http://127.0.0.1:{port}", clock=lambda: NOW) as source,
    ):
        asked = [question(pod(name=name), port=1, path="/x", names=["queue"]) for name in ("p", "q")]
        found = await source.expose(asked)

    assert found.looks[asked[0].endpoint].seconds == NOW - 7
    assert found.looks[asked[0].endpoint].exposed == {"queue": ExposedMetric(value=7)}
    assert found.failures[asked[1].endpoint] == "Prometheus has no metrics of this pod"
    assert queries[1] == '{__name__=~"queue|queue_bucket",namespace=~"ns"}'
