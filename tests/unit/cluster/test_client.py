"""Calls of the API client, with valid responses and with faults."""

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
from apiserver.cluster.resource import CONFIG_MAPS, PODS, VARIANT_AUTOSCALINGS, Selection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unit.cluster.conftest import FakeApiServer

PATH = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_an_object_can_be_created_read_replaced_and_deleted(cluster: Cluster) -> None:
    """Reading returns what creation returned."""
    created = await cluster.create(CONFIG_MAPS, config_map("a", x="1"))
    read = await cluster.get(CONFIG_MAPS, "a", namespace="default")
    assert read == created

    replaced = await cluster.replace(CONFIG_MAPS, read | {"data": {"x": "2"}})
    assert replaced["data"] == {"x": "2"}

    await cluster.delete(CONFIG_MAPS, "a", namespace="default")
    with pytest.raises(errors.NotFound, match='"a" not found'):
        await cluster.get(CONFIG_MAPS, "a", namespace="default")


async def test_creating_an_existing_object_raises_already_exists(cluster: Cluster) -> None:
    """Other conflicts raise another error."""
    await cluster.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(errors.AlreadyExists) as caught:
        await cluster.create(CONFIG_MAPS, config_map("a"))

    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")


async def test_replace_of_an_old_version_conflicts(cluster: Cluster, api: FakeApiServer) -> None:
    """Another client has changed the object in between."""
    mine = await cluster.create(CONFIG_MAPS, config_map("a"))
    api.put(PATH, config_map("a", by="another"))
    with pytest.raises(errors.Conflict, match="modified"):
        await cluster.replace(CONFIG_MAPS, mine)


async def test_delete_with_another_uid_conflicts(cluster: Cluster) -> None:
    """An object that was recreated with the same name is not deleted."""
    await cluster.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(errors.Conflict):
        await cluster.delete(CONFIG_MAPS, "a", namespace="default", uid="another")


async def test_apply_sends_the_parameters_of_server_side_apply(cluster: Cluster, api: FakeApiServer) -> None:
    """Sent are content type, field manager, force, API version and kind."""
    body = {"metadata": {"name": "v", "namespace": "default"}, "status": {"x": 1}}
    await cluster.apply(VARIANT_AUTOSCALINGS, body, field_manager="me", force=True, subresource="status")
    request = api.requests[-1]

    assert request.content_type == "application/apply-patch+yaml"
    assert dict(request.query) == {"fieldManager": "me", "force": "true"}
    assert request.path.endswith("/variantautoscalings/v/status")
    assert api.bodies[-1]["apiVersion"] == "llmd.ai/v1alpha2"
    assert api.bodies[-1]["kind"] == "VariantAutoscaling"


async def test_a_json_patch_is_applied_only_if_its_test_holds(cluster: Cluster) -> None:
    """Otherwise `Invalid` is raised."""
    await cluster.create(CONFIG_MAPS, config_map("a", x="1"))
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "2"},
    ]
    patched = await cluster.patch_json(CONFIG_MAPS, "a", operations, namespace="default")
    assert patched["data"] == {"x": "2"}

    with pytest.raises(errors.Invalid):
        await cluster.patch_json(CONFIG_MAPS, "a", operations, namespace="default")


async def test_a_merge_patch_keeps_other_fields_and_checks_the_version(cluster: Cluster) -> None:
    """A patch of an older resource version conflicts."""
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


async def test_eviction_is_rejected_by_a_budget_or_another_uid(cluster: Cluster) -> None:
    """Otherwise the pod is deleted."""
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


async def test_list_reads_every_page(cluster: Cluster, api: FakeApiServer) -> None:
    """Pages are joined, and items have API version and kind."""
    for number in range(7):
        api.put(PATH, config_map(f"c{number}"))
    listed = await cluster.list(CONFIG_MAPS, page_size=3)

    assert [item["metadata"]["name"] for item in listed["items"]] == [f"c{n}" for n in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in listed["items"]} == {("v1", "ConfigMap")}
    assert len(api.requests) == 3


async def test_list_starts_over_without_pages_if_a_continue_token_expired(
    cluster: Cluster, api: FakeApiServer
) -> None:
    """The second list has no limit."""
    for number in range(7):
        api.put(PATH, config_map(f"c{number}"))
    api.expire_continue = True

    assert len((await cluster.list(CONFIG_MAPS, page_size=3))["items"]) == 7
    assert "limit" not in api.requests[-1].query


async def test_metadata_only_requests_partial_object_metadata(cluster: Cluster, api: FakeApiServer) -> None:
    """The server then omits all but the metadata."""
    api.put(PATH, config_map("a", x="1"))
    listed = await cluster.list(CONFIG_MAPS, metadata_only=True)

    assert "data" not in listed["items"][0]
    assert "PartialObjectMetadataList" in api.requests[-1].headers["Accept"]


async def test_watch_reads_lines_of_any_length(cluster: Cluster, api: FakeApiServer) -> None:
    """Objects far above the HTTP library's line limit are read completely."""
    api.put(PATH, config_map("big", text="x" * 3_000_000))
    stream = cluster.watch(Selection(resource=CONFIG_MAPS), resource_version="1", timeout_seconds=60)
    async with aclosing(stream), asyncio.timeout(60):
        event = await anext(stream)

    assert (event.type, len(event.object["data"]["text"])) == ("ADDED", 3_000_000)


async def test_watch_of_an_old_version_raises_expired(cluster: Cluster, api: FakeApiServer) -> None:
    """The server sends an ERROR event with code 410 in a response with status 200."""
    api.compact()
    stream = cluster.watch(Selection(resource=CONFIG_MAPS), resource_version="1", timeout_seconds=60)
    with pytest.raises(errors.Expired, match="too old"):
        await anext(stream)


@pytest.mark.parametrize(
    ("fault", "want", "message"),
    [
        pytest.param({"code": 503}, errors.Unavailable, "503", id="a server error without a body"),
        pytest.param(
            {"code": 200, "body": b"<html>"}, errors.Unavailable, "not JSON", id="an HTML page of a proxy"
        ),
        pytest.param(
            {"code": 200, "body": b"[1]"}, errors.Unavailable, "not a JSON object", id="JSON, but a list"
        ),
        pytest.param({"code": 403, "body": b"no\n"}, errors.Forbidden, "^no$", id="an error in plain text"),
        pytest.param({"code": 413, "body": b"[]"}, errors.Invalid, "413", id="another 4xx"),
        pytest.param({"sever": True}, errors.Unavailable, "GET /api/v1", id="a severed connection"),
        pytest.param({"hang": True}, errors.Unavailable, "within 1 s", id="no response"),
    ],
)
async def test_invalid_responses_raise_a_client_error_without_long_delay(
    cluster: Cluster, api: FakeApiServer, *, fault: dict[str, Any], want: type[Exception], message: str
) -> None:
    """Every fault maps to one of the client's error classes."""
    api.fail("GET", times=3, **fault)
    with pytest.raises(want, match=message):
        await cluster.get(PODS, "p", namespace="default", timeout_seconds=1 if "hang" in fault else 60)


async def test_an_unreachable_server_raises_unavailable(tmp_path: Path, unused_tcp_port: int) -> None:
    """Its port refuses the connection."""
    path = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{unused_tcp_port}"}}],
    }
    path.write_text(json.dumps(config))
    async with await Cluster.connect(path, environ={}) as cluster:
        text = f"GET /version: no connection to 127.0.0.1:{unused_tcp_port}: Connection refused"
        with pytest.raises(errors.Unavailable, match=text):
            await cluster.get_path("/version")


@pytest.mark.parametrize(
    ("code", "status", "header", "want", "seconds"),
    [
        pytest.param(429, {}, "7", errors.Throttled, 7.0, id="429 with a header"),
        pytest.param(
            429, {"details": {"retryAfterSeconds": 3}}, None, errors.Throttled, 3.0, id="429 with details"
        ),
        pytest.param(429, {}, "Wed, 21 Oct 2026 07:28:00 GMT", errors.Throttled, None, id="429 with a date"),
        pytest.param(429, {"details": None}, "nan", errors.Throttled, None, id="429 with an invalid header"),
        pytest.param(
            500,
            {"reason": "Expired"},
            None,
            errors.Expired,
            None,
            id="the reason takes precedence over the code",
        ),
        pytest.param(504, {}, "1", errors.Unavailable, 1.0, id="a timeout of the server"),
        pytest.param(418, {}, None, errors.Invalid, None, id="an unknown 4xx"),
    ],
)
def test_a_response_is_mapped_to_an_error_class_and_a_retry_delay(
    code: int, status: dict[str, Any], *, header: str | None, want: type[Exception], seconds: float | None
) -> None:
    """The class depends on reason and code, the delay on header and details."""
    error = error_of(code, status=status, retry_after=header)

    assert (type(error), error.retry_after_seconds) == (want, seconds)


async def test_a_rotated_token_is_read_again_after_401(
    api: FakeApiServer, tmp_path: Path, write_kubeconfig: Callable[..., Path]
) -> None:
    """The file is read once for all calls in flight, and its trailing newline is removed."""
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


async def test_a_revoked_token_raises_unauthorized(cluster: Cluster, api: FakeApiServer) -> None:
    """The request with reloaded credentials is rejected as well."""
    api.tokens = set()
    with pytest.raises(errors.Unauthorized):
        await cluster.get_path("/version")


async def test_proxy_environment_variables_are_ignored(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy must not receive requests with their token."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert await cluster.get_path("/version") == {"gitVersion": "v0"}


async def test_the_kubeconfig_variable_may_list_several_files(
    api: FakeApiServer, write_kubeconfig: Callable[..., Path]
) -> None:
    """Missing files are skipped."""
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
        pytest.param("\udcff", "it is not UTF-8 text", id="invalid UTF-8"),
        pytest.param("current-context: x\ncontexts: []", "Expected object with name x", id="no such context"),
    ],
)
async def test_an_unusable_kubeconfig_is_rejected_with_its_reason(
    tmp_path: Path, content: str | None, message: str
) -> None:
    """The message describes the error."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content, errors="surrogateescape")
    with pytest.raises(errors.NotConfigured, match=message):
        await Cluster.connect(path, environ={})


async def test_a_kubeconfig_in_the_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used if nothing names another file; an empty text names none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("[]")

    with pytest.raises(errors.NotConfigured, match=r"cannot use kubeconfig .*/\.kube/config: "):
        await Cluster.connect("", "", environ={})


async def test_a_missing_service_account_in_a_pod_is_reported() -> None:
    """The error names the account."""
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    with pytest.raises(errors.NotConfigured, match="the pod's service account"):
        await Cluster.connect(environ=environ)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "import apiserver.cluster.cache, apiserver.cluster.client, apiserver.cluster.lease\n"
            "assert not names('kubernetes_asyncio')",
            id="before a connection, no module of the client library is loaded",
        ),
        pytest.param(
            "import asyncio\nfrom apiserver.cluster.client import Cluster\n"
            "async def connect():\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "asyncio.run(connect())\n"
            "assert not names('kubernetes_asyncio.client.models.')\n"
            "assert not names('kubernetes_asyncio.client.api.')",
            id="with a connection, none of its generated modules is loaded",
        ),
        pytest.param(
            "import asyncio, kubernetes_asyncio\nfrom apiserver.cluster.client import Cluster\n"
            "async def connect():\n"
            "    async with await Cluster.connect(sys.argv[1]): pass\n"
            "asyncio.run(connect())\n"
            "assert names('kubernetes_asyncio.client.models.')",
            id="a library that is already loaded completely is used",
        ),
    ],
)
def test_generated_modules_of_the_client_library_are_not_loaded(
    program: str, write_kubeconfig: Callable[..., Path]
) -> None:
    """They cost 33 MiB of memory and are not needed."""
    start = (
        "import sys\ndef names(prefix): return [name for name in sys.modules if name.startswith(prefix)]\n"
    )
    command = [sys.executable, "-c", start + program, str(write_kubeconfig(username="u"))]
    subprocess.run(command, check=True)
