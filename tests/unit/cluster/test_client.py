"""Calls against a server that behaves, and against one that does not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from apiserver.cluster import errors
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import error_of
from apiserver.cluster.resource import CONFIG_MAPS, PODS, VARIANT_AUTOSCALINGS
from apiserver.cluster.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from unit.cluster.conftest import FakeApiServer

PATH = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Build a ConfigMap."""
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_object_round_trip(cluster: Cluster) -> None:
    """What is created can be read, replaced and deleted."""
    created = await cluster.create(CONFIG_MAPS, config_map("a", x="1"))
    read = await cluster.get(CONFIG_MAPS, "a", namespace="default")
    assert read == created

    replaced = await cluster.replace(CONFIG_MAPS, read | {"data": {"x": "2"}})
    assert replaced["data"] == {"x": "2"}

    await cluster.delete(CONFIG_MAPS, "a", namespace="default")
    with pytest.raises(errors.NotFound, match='"a" not found'):
        await cluster.get(CONFIG_MAPS, "a", namespace="default")


async def test_create_twice(cluster: Cluster) -> None:
    """A second create is told apart from other conflicts."""
    await cluster.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(errors.AlreadyExists) as caught:
        await cluster.create(CONFIG_MAPS, config_map("a"))

    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")


async def test_replace_of_an_old_version_conflicts(cluster: Cluster, api: FakeApiServer) -> None:
    """Somebody else's write in between is seen."""
    mine = await cluster.create(CONFIG_MAPS, config_map("a"))
    api.put(PATH, config_map("a", by="another"))
    with pytest.raises(errors.Conflict, match="modified"):
        await cluster.replace(CONFIG_MAPS, mine)


async def test_delete_keeps_a_successor(cluster: Cluster) -> None:
    """An object that replaced the one that was meant is not deleted."""
    await cluster.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(errors.Conflict):
        await cluster.delete(CONFIG_MAPS, "a", namespace="default", uid="another")


async def test_apply_sends_what_server_side_apply_wants(cluster: Cluster, api: FakeApiServer) -> None:
    """Content type, manager, force and identity reach the server (a merge of types is refused there)."""
    body = {"metadata": {"name": "v", "namespace": "default"}, "status": {"x": 1}}
    await cluster.apply(VARIANT_AUTOSCALINGS, body, field_manager="me", force=True, subresource="status")
    request = api.requests[-1]

    assert request.content_type == "application/apply-patch+yaml"
    assert dict(request.query) == {"fieldManager": "me", "force": "true"}
    assert request.path.endswith("/variantautoscalings/v/status")
    assert api.bodies[-1]["apiVersion"] == "llmd.ai/v1alpha2"
    assert api.bodies[-1]["kind"] == "VariantAutoscaling"


async def test_json_patch(cluster: Cluster) -> None:
    """A patch is applied only when its test holds."""
    await cluster.create(CONFIG_MAPS, config_map("a", x="1"))
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "2"},
    ]
    patched = await cluster.patch_json(CONFIG_MAPS, "a", operations, namespace="default")
    assert patched["data"] == {"x": "2"}

    with pytest.raises(errors.Invalid):
        await cluster.patch_json(CONFIG_MAPS, "a", operations, namespace="default")


async def test_merge_patch(cluster: Cluster) -> None:
    """What is not named stays, and who has written since wins."""
    made = await cluster.create(CONFIG_MAPS, config_map("a", x="1", y="1"))
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    patched = await cluster.patch_merge(
        CONFIG_MAPS, "a", {"metadata": version, "data": {"x": "2"}}, namespace="default"
    )
    assert patched["data"] == {"x": "2", "y": "1"}

    with pytest.raises(errors.Conflict, match="modified"):
        await cluster.patch_merge(
            CONFIG_MAPS, "a", {"metadata": version, "data": {"x": "3"}}, namespace="default"
        )


async def test_eviction(cluster: Cluster) -> None:
    """A budget refuses for now, a namesake is not meant, and else the pod goes."""
    pod = {"metadata": {"name": "p", "namespace": "default", "labels": {"budget": "0"}}}
    made = await cluster.create(PODS, pod)
    with pytest.raises(errors.Throttled, match="budget"):
        await cluster.evict("default", "p", uid=made["metadata"]["uid"])

    made = await cluster.replace(PODS, made | {"metadata": made["metadata"] | {"labels": {}}})
    with pytest.raises(errors.Conflict):
        await cluster.evict("default", "p", uid="another")
    await cluster.evict("default", "p", uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await cluster.get(PODS, "p", namespace="default")


async def test_a_fenced_connection_reads_on_and_writes_nothing(cluster: Cluster, api: FakeApiServer) -> None:
    """Who no longer leads may look; nothing else is even sent, and the connection itself is not changed."""
    leads = True
    fenced = cluster.fenced(lambda: leads)
    made = await fenced.create(CONFIG_MAPS, config_map("a"))
    leads = False
    sent = len(api.requests)
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: fenced.create(CONFIG_MAPS, config_map("b")),
        lambda: fenced.replace(CONFIG_MAPS, made),
        lambda: fenced.apply(CONFIG_MAPS, made, field_manager="me"),
        lambda: fenced.patch_json(CONFIG_MAPS, "a", [], namespace="default"),
        lambda: fenced.patch_merge(CONFIG_MAPS, "a", {}, namespace="default"),
        lambda: fenced.evict("default", "p", uid="u"),
        lambda: fenced.delete(CONFIG_MAPS, "a", namespace="default"),
    ]
    for write in writes:
        with pytest.raises(errors.NotLeading, match="does not hold the lease"):
            await write()

    assert len(api.requests) == sent
    assert await fenced.get(CONFIG_MAPS, "a", namespace="default") == made
    await cluster.delete(CONFIG_MAPS, "a", namespace="default")


async def test_list_reads_every_page(cluster: Cluster, api: FakeApiServer) -> None:
    """Pages are joined, and items know what they are."""
    for number in range(7):
        api.put(PATH, config_map(f"c{number}"))
    listed = await cluster.list(CONFIG_MAPS, page_size=3)

    assert [item["metadata"]["name"] for item in listed["items"]] == [f"c{n}" for n in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in listed["items"]} == {("v1", "ConfigMap")}
    assert len(api.requests) == 3


async def test_list_survives_an_expired_continue_token(cluster: Cluster, api: FakeApiServer) -> None:
    """When the list grows old on the way it is read again, whole."""
    for number in range(7):
        api.put(PATH, config_map(f"c{number}"))
    api.expire_continue = True

    assert len((await cluster.list(CONFIG_MAPS, page_size=3))["items"]) == 7
    assert "limit" not in api.requests[-1].query


async def test_metadata_only_is_asked_for(cluster: Cluster, api: FakeApiServer) -> None:
    """The server is asked to leave out all but metadata."""
    api.put(PATH, config_map("a", x="1"))
    listed = await cluster.list(CONFIG_MAPS, metadata_only=True)

    assert "data" not in listed["items"][0]
    assert "PartialObjectMetadataList" in api.requests[-1].headers["Accept"]


async def test_watch_reads_lines_of_any_length(cluster: Cluster, api: FakeApiServer) -> None:
    """Objects far above the HTTP library's line limit arrive whole."""
    api.put(PATH, config_map("big", text="x" * 3_000_000))
    stream = cluster.watch(Selection(resource=CONFIG_MAPS), resource_version="1", timeout_seconds=60)
    async with aclosing(stream), asyncio.timeout(60):
        event = await anext(stream)

    assert (event.type, len(event.object["data"]["text"])) == ("ADDED", 3_000_000)


async def test_watch_of_an_old_version(cluster: Cluster, api: FakeApiServer) -> None:
    """An ERROR event with 410 inside a 200 answer is `Expired`."""
    api.compact()
    stream = cluster.watch(Selection(resource=CONFIG_MAPS), resource_version="1", timeout_seconds=60)
    with pytest.raises(errors.Expired, match="too old"):
        await anext(stream)


@pytest.mark.parametrize(
    ("fault", "want", "message"),
    [
        pytest.param({"code": 503}, errors.Unavailable, "503", id="a server error without a body"),
        pytest.param({"code": 200, "body": b"<html>"}, errors.Unavailable, "not JSON", id="a proxy's page"),
        pytest.param(
            {"code": 200, "body": b"[1]"}, errors.Unavailable, "not a JSON object", id="JSON, but a list"
        ),
        pytest.param({"code": 403, "body": b"no\n"}, errors.Forbidden, "^no$", id="a refusal in plain text"),
        pytest.param({"code": 413, "body": b"[]"}, errors.Invalid, "413", id="another 4xx"),
        pytest.param({"sever": True}, errors.Unavailable, "GET /api/v1", id="a severed connection"),
        pytest.param({"hang": True}, errors.Unavailable, "within 1 s", id="silence"),
    ],
)
async def test_bad_answers(
    cluster: Cluster,
    api: FakeApiServer,
    *,
    fault: dict[str, Any],
    want: type[Exception],
    message: str,
) -> None:
    """Whatever comes back is one of our errors, soon."""
    api.fail("GET", times=3, **fault)
    with pytest.raises(want, match=message):
        await cluster.get(PODS, "p", namespace="default", timeout_seconds=1 if "hang" in fault else 60)


async def test_unreachable_server(tmp_path: Path, unused_tcp_port: int) -> None:
    """A refused connection is `Unavailable`."""
    path = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{unused_tcp_port}"}}],
    }
    path.write_text(json.dumps(config))
    async with await Cluster.connect(path, environ={}) as cluster:
        with pytest.raises(errors.Unavailable, match="GET /version"):
            await cluster.get_path("/version")


@pytest.mark.parametrize(
    ("code", "status", "header", "want", "seconds"),
    [
        pytest.param(429, {}, "7", errors.Throttled, 7.0, id="429 with a header"),
        pytest.param(
            429, {"details": {"retryAfterSeconds": 3}}, None, errors.Throttled, 3.0, id="429 with details"
        ),
        pytest.param(429, {}, "Wed, 21 Oct 2026 07:28:00 GMT", errors.Throttled, None, id="429 with a date"),
        pytest.param(429, {"details": None}, "nan", errors.Throttled, None, id="429 with nonsense"),
        pytest.param(
            500, {"reason": "Expired"}, None, errors.Expired, None, id="the reason outweighs the code"
        ),
        pytest.param(504, {}, "1", errors.Unavailable, 1.0, id="a time-out of the server"),
        pytest.param(418, {}, None, errors.Invalid, None, id="an unknown 4xx"),
    ],
)
def test_error_of(
    code: int, status: dict[str, Any], *, header: str | None, want: type[Exception], seconds: float | None
) -> None:
    """The class follows reason and code; the wait follows header and details."""
    error = error_of(code, status=status, retry_after=header)

    assert (type(error), error.retry_after_seconds) == (want, seconds)


async def test_a_rotated_token_is_read_anew(
    api: FakeApiServer, tmp_path: Path, write_kubeconfig: Callable[..., Path]
) -> None:
    """A 401 makes the token file be read again, once for all calls in flight; its newline does no harm."""
    token = tmp_path / "token"
    token.write_text("old\n")
    api.tokens = {"old"}
    async with await Cluster.connect(write_kubeconfig(tokenFile=str(token)), environ={}) as cluster:
        await cluster.get_path("/version")
        token.write_text("new\n")
        api.tokens = {"new"}
        await asyncio.gather(*[cluster.get_path("/version") for _ in range(4)])

    refused = [r for r in api.requests if r.headers["Authorization"] == "Bearer old"]
    assert len(refused) == 1 + 4


async def test_a_revoked_token(cluster: Cluster, api: FakeApiServer) -> None:
    """When fresh credentials are refused too, the error says so."""
    api.tokens = set()
    with pytest.raises(errors.Unauthorized):
        await cluster.get_path("/version")


async def test_proxy_variables_are_not_obeyed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment does not get our requests and their token."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert await cluster.get_path("/version") == {"gitVersion": "v0"}


async def test_kubeconfig_of_the_environment(
    api: FakeApiServer, write_kubeconfig: Callable[..., Path]
) -> None:
    """`KUBECONFIG` may list several files; those that are missing are passed over."""
    path = write_kubeconfig(username="u")
    async with await Cluster.connect(environ={"KUBECONFIG": f"/nowhere:{path}"}) as cluster:
        assert cluster.host == api.url


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "no kubeconfig at", id="a missing file"),
        pytest.param("{", "cannot use kubeconfig", id="broken YAML"),
        pytest.param("[]", "it does not have the structure of a kubeconfig", id="a list"),
        pytest.param("just text", "kubeconfig: it does not have the structure of a kubeconfig", id="text"),
        pytest.param("contexts: 5", "it does not have the structure of a kubeconfig", id="a number"),
        pytest.param("\udcff", "it is not UTF-8 text", id="other bytes"),
        pytest.param("current-context: x\ncontexts: []", "Expected object with name x", id="no such context"),
    ],
)
async def test_unusable_kubeconfig(tmp_path: Path, content: str | None, message: str) -> None:
    """A kubeconfig that cannot be used is refused with its name and the reason."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content, errors="surrogateescape")
    with pytest.raises(errors.NotConfigured, match=message):
        await Cluster.connect(path, environ={})


async def test_a_pod_without_an_account() -> None:
    """In a pod whose account is not mounted the error names the account."""
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    with pytest.raises(errors.NotConfigured, match="the pod's service account"):
        await Cluster.connect(environ=environ)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "import apiserver.cluster.cache, apiserver.cluster.client, apiserver.cluster.lease\n"
            "assert not names('kubernetes_asyncio')",
            id="before a connection nothing of the client library is loaded",
        ),
        pytest.param(
            "import asyncio\nfrom apiserver.cluster.client import Cluster\n"
            "async def connect():\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "asyncio.run(connect())\n"
            "assert not names('kubernetes_asyncio.client.models.')\n"
            "assert not names('kubernetes_asyncio.client.api.')",
            id="with one, none of its generated modules is",
        ),
        pytest.param(
            "import asyncio, kubernetes_asyncio\nfrom apiserver.cluster.client import Cluster\n"
            "async def connect():\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "asyncio.run(connect())\n"
            "assert names('kubernetes_asyncio.client.models.')",
            id="where somebody has loaded all of it, that is used",
        ),
    ],
)
def test_the_client_library_is_loaded_sparingly(program: str, write_kubeconfig: Callable[..., Path]) -> None:
    """The library's generated half costs 33 MiB and is of no use to us."""
    start = (
        "import sys\ndef names(prefix): return [name for name in sys.modules if name.startswith(prefix)]\n"
    )
    command = [sys.executable, "-c", start + program, str(write_kubeconfig(username="u"))]
    subprocess.run(command, check=True)
