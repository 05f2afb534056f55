"""The application: values, discovery documents, errors and authentication."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.certified import Certified, issued

from apiserver.cluster.cache import Change
from apiserver.metrics.index import MetricIndex
from apiserver.metrics.routes import API_GROUP, API_RESOURCE_LIST, canonical_quantity
from apiserver.metrics.run import application
from apiserver.metrics.watches import Watches
from apiserver.serving.config import Limits
from apiserver.serving.listener import Listener
from apiserver.serving.process import Readiness
from apiserver.serving.tls import ServerTls

NOW = dt.datetime.now(dt.UTC)
BASE = "/apis/external.metrics.k8s.io/v1beta1"
HPA_ACCEPT = "application/vnd.kubernetes.protobuf, */*"


@dataclass
class Server:
    """A running server, its watched objects, and certificates for clients."""

    url: str
    watched: Watches
    certificate: Certified
    authority: Certified
    directory: Path
    why_incomplete: list[str] = field(default_factory=list)

    def session(
        self, name: str | None = "front-proxy-client", authority: Certified | None = None
    ) -> aiohttp.ClientSession:
        """Open a session with a client certificate of this name, or with none."""
        context = ssl.create_default_context(cadata=self.certificate.pem.decode())
        if name is not None:
            pair = issued(name, authority or self.authority).write(self.directory / "client")
            context.load_cert_chain(*pair)
        return aiohttp.ClientSession(
            self.url,
            connector=aiohttp.TCPConnector(ssl=context),
            headers={"X-Remote-User": "hpa", "Accept": HPA_ACCEPT},
        )

    def trust(self, authority: Certified) -> None:
        """Publish this front proxy authority, as kube-apiserver does."""
        data = {
            "requestheader-client-ca-file": authority.pem.decode(),
            "requestheader-allowed-names": '["front-proxy-client"]',
        }
        key = ("kube-system", "extension-apiserver-authentication")
        self.watched.take_front_proxy(Change(key=key, old=None, new={"data": data}))

    def decide(self, name: str, replicas: int | None) -> None:
        """Store a current decision for a VariantAutoscaling of namespace `team`; None deletes the object."""
        decided = {"numReplicas": replicas, "lastRunTime": NOW.isoformat(), "accelerator": "A100"}
        new = {
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"modelID": "meta/llama"},
            "status": {"desiredOptimizedAlloc": decided},
        }
        change = Change(key=("team", name), old=None, new=None if replicas is None else new)
        self.watched.take_variant(change)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """Run the API with one variant, `a`, of 3 replicas, and a known front proxy."""
    serving = issued("localhost")
    tls = ServerTls(*serving.write(tmp_path / "server"), client_authorities=b"")
    index = MetricIndex(stale_after_seconds=180)
    watched = Watches(index, tls)
    why_incomplete: list[str] = []
    app = application(
        index,
        gate=lambda: watched.gate,
        tokens=lambda: watched.tokens,
        why_incomplete=lambda _: why_incomplete[0] if why_incomplete else None,
        readiness=Readiness(),
        clock=lambda: NOW,
    )
    listener = await Listener.open(app, Limits(), host="127.0.0.1", port=0, context=tls.context)
    running = Server(
        url=f"https://localhost:{listener.port}",
        watched=watched,
        certificate=serving,
        authority=issued("front-proxy-ca"),
        directory=tmp_path,
        why_incomplete=why_incomplete,
    )
    running.trust(running.authority)
    running.decide("a", 3)
    yield running
    await listener.close()


async def test_an_autoscaler_gets_a_value_list(server: Server) -> None:
    """The response to the front proxy is JSON, although the autoscaler prefers protobuf."""
    path = f"{BASE}/namespaces/team/wva_desired_replicas"
    async with (
        server.session() as session,
        session.get(path, params={"labelSelector": "exported_namespace=team,variant_name=a"}) as answer,
    ):
        assert answer.status == 200
        assert answer.content_type == "application/json"
        assert await answer.json() == {
            "kind": "ExternalMetricValueList",
            "apiVersion": "external.metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": [
                {
                    "metricName": "wva_desired_replicas",
                    "metricLabels": {
                        "variant_name": "a",
                        "namespace": "team",
                        "exported_namespace": "team",
                        "accelerator_type": "A100",
                        "model_id": "meta/llama",
                    },
                    "timestamp": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
                    "value": "3",
                }
            ],
        }


@pytest.mark.parametrize(
    ("method", "path", "want_code", "want_reason"),
    [
        pytest.param("GET", "/namespaces/team/none", 404, "NotFound", id="another metric"),
        pytest.param("GET", "/namespaces/none/wva_desired_replicas", 404, "NotFound", id="another namespace"),
        pytest.param("GET", "/namespaces/team", 404, "NotFound", id="a namespace without a metric"),
        pytest.param("GET", "/namespaces/team/a/b", 404, "NotFound", id="a metric with a slash"),
        pytest.param("GET", "/namespaces/team/a%2Fb", 404, "NotFound", id="a metric with an encoded slash"),
        pytest.param("GET", "/wva_desired_replicas", 404, "NotFound", id="a metric without a namespace"),
        pytest.param(
            "GET",
            "/namespaces/team/wva_desired_replicas?labelSelector=a%3D%3D%3Db",
            400,
            "BadRequest",
            id="an invalid selector",
        ),
        pytest.param(
            "GET", "/namespaces/team/wva_desired_replicas?watch=true", 405, "MethodNotAllowed", id="a watch"
        ),
        pytest.param("POST", "/namespaces/team/wva_desired_replicas", 405, "MethodNotAllowed", id="a write"),
        pytest.param("DELETE", "", 405, "MethodNotAllowed", id="a deletion"),
    ],
)
async def test_errors_are_returned_as_statuses(
    server: Server, method: str, path: str, *, want_code: int, want_reason: str
) -> None:
    """Every error is a `metav1.Status` with the code of the response."""
    async with server.session() as session, session.request(method, BASE + path) as answer:
        body = await answer.json()

    assert (answer.status, body["code"], body["reason"]) == (want_code, want_code, want_reason)
    assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
    assert body["message"]


async def test_a_client_that_does_not_accept_json_gets_406(server: Server) -> None:
    """No other format is served."""
    path, accept = f"{BASE}/namespaces/team/wva_desired_replicas", {"Accept": "application/yaml"}
    async with server.session() as session, session.get(path, headers=accept) as answer:
        assert answer.status == 406
        assert (await answer.json())["reason"] == "NotAcceptable"


@pytest.mark.parametrize("path", ["/", "/apis", "/apis/external.metrics.k8s.io", BASE])
async def test_discovery_documents_are_served(server: Server, path: str) -> None:
    """The aggregator and generic clients request them."""
    async with server.session() as session, session.get(path) as answer:
        assert answer.status == 200
        assert await answer.json()


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/version"])
async def test_openapi_and_version_are_not_found(server: Server, path: str) -> None:
    """The aggregator accepts a 404 for these paths."""
    async with server.session() as session, session.get(path) as answer:
        assert answer.status == 404


async def test_a_token_is_reviewed_only_without_a_client_certificate(server: Server) -> None:
    """The front proxy may forward the token of its user; without a connection, no token is accepted."""
    bearer = {"Authorization": "Bearer token"}
    async with server.session() as session, session.get(BASE, headers=bearer) as answer:
        assert answer.status == 200
    async with server.session(None) as session, session.get(BASE, headers=bearer) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (503, "ServiceUnavailable")


@pytest.mark.parametrize("path", [BASE, "/apis", f"{BASE}/namespaces/team/wva_desired_replicas", "/none"])
@pytest.mark.parametrize("name", [pytest.param(None, id="without a certificate"), "admin"])
async def test_clients_other_than_the_front_proxy_get_401(
    server: Server, name: str | None, path: str
) -> None:
    """The response does not depend on the path or on headers, so it reveals nothing."""
    async with server.session(name) as session, session.get(path) as answer:
        assert answer.status == 401
        assert (await answer.json())["reason"] == "Unauthorized"


async def test_a_certificate_of_another_authority_is_rejected_in_the_handshake(server: Server) -> None:
    """This also holds if that authority has the same name."""
    stranger = server.session(authority=issued("front-proxy-ca"))
    with pytest.raises(aiohttp.ClientError):
        async with stranger as session, session.get(BASE):
            pass


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_health_endpoints_need_no_certificate(server: Server, path: str) -> None:
    """Probes have none."""
    async with server.session(None) as session, session.get(path) as answer:
        assert (answer.status, await answer.text()) == (200, "ok")


async def test_metrics_are_unavailable_until_the_variants_have_been_read(server: Server) -> None:
    """A variant that has not been read yet must not look like one that does not exist."""
    server.why_incomplete.append("not read yet")
    path = f"{BASE}/namespaces/team/wva_desired_replicas"
    async with server.session() as session:
        async with session.get(path) as answer:
            assert (answer.status, (await answer.json())["message"]) == (503, "not read yet")
        async with session.get(BASE) as answer:
            assert answer.status == 200


async def test_a_deleted_variant_is_not_found(server: Server) -> None:
    """The HPA then keeps its replicas."""
    server.decide("a", None)
    async with (
        server.session() as session,
        session.get(f"{BASE}/namespaces/team/wva_desired_replicas") as answer,
    ):
        assert answer.status == 404


async def test_an_open_connection_is_rejected_after_its_authority_was_replaced(server: Server) -> None:
    """A front proxy with a certificate of the new authority is accepted."""
    newer = issued("front-proxy-ca-2")
    async with server.session() as old:
        async with old.get(BASE) as answer:
            assert answer.status == 200
        server.trust(newer)
        async with old.get(BASE) as answer:
            assert answer.status == 401
    async with server.session(authority=newer) as new, new.get(BASE) as answer:
        assert answer.status == 200


async def test_a_missing_front_proxy_config_map_changes_nothing(server: Server) -> None:
    """The last known front proxy is still accepted."""
    key = ("kube-system", "extension-apiserver-authentication")
    server.watched.take_front_proxy(Change(key=key, old=None, new=None))
    async with server.session() as session, session.get(BASE) as answer:
        assert answer.status == 200


async def test_a_user_with_many_groups_is_served(server: Server) -> None:
    """The front proxy sends one header per group."""
    many = [("X-Remote-Group", f"group-{number}") for number in range(300)]
    async with server.session() as session, session.get(BASE, headers=many) as answer:
        assert answer.status == 200


async def test_an_internal_error_is_returned_without_its_text(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the log contains details."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(MetricIndex, "query", fail)
    path = f"{BASE}/namespaces/team/wva_desired_replicas"
    async with server.session() as session, session.get(path) as answer:
        body = await answer.json()

    assert (answer.status, body["reason"]) == (500, "InternalError")
    assert "secret" not in str(body)


def test_one_resource_represents_all_metrics() -> None:
    """Without a resource kubectl reports an error; one per metric would slow down every kubectl call."""
    assert [(r["name"], r["kind"], r["verbs"], r["namespaced"]) for r in API_RESOURCE_LIST["resources"]] == [
        ("externalmetrics", "ExternalMetricValueList", ["get"], True)
    ]


def test_the_group_prefers_its_only_version() -> None:
    """An API group document must have a preferred version."""
    assert API_GROUP["preferredVersion"] == {
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "version": "v1beta1",
    }


SCALE_MILLI = {
    "m": 1,
    "": 1000,
    "k": 1000**2,
    "M": 1000**3,
    "G": 1000**4,
    "T": 1000**5,
    "P": 1000**6,
    "E": 1000**7,
}


@pytest.mark.parametrize(
    ("value_milli", "want"),
    [
        (0, "0"),
        (1, "1m"),
        (3000, "3"),
        (3300, "3300m"),
        (-500, "-500m"),
        (1_000_000, "1k"),
        (1_100_000, "1100"),
    ],
)
def test_the_largest_exact_suffix_is_used(value_milli: int, want: str) -> None:
    """For example, thousandths have the suffix `m` and thousands `k`."""
    assert canonical_quantity(value_milli) == want


@given(st.integers(-(10**24), 10**24))
def test_parsing_the_text_gives_the_same_value(value_milli: int) -> None:
    """No digit is lost."""
    text = canonical_quantity(value_milli)
    digits = text.rstrip("mkMGTPE")

    assert int(digits) * SCALE_MILLI[text[len(digits) :]] == value_milli
