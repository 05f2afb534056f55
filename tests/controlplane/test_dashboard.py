"""`stowplan dashboard` on a live cluster, in headless Chromium."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp
import pytest
from support.chromium import browser
from support.manifests import autoscaler, deployment, l4_node, listed, variant

from hack.controlplane import ControlPlane

if TYPE_CHECKING:
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

SECONDS: Final = 60.0
SYSTEM: Final = "stowplan-system"
MANIFESTS: Final = Path(__file__).parents[2] / "manifests"
OVERFLOW: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@contextlib.asynccontextmanager
async def dashboard(control_plane: ControlPlane, namespace: str, *options: str) -> AsyncIterator[str]:
    """Run the command, and yield the address that it prints once the page has the cluster's state."""
    scope = () if "-A" in options else ("-n", namespace)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apiserver.cli", "dashboard", *scope, "--interval", "5",
        "--kubeconfig", str(control_plane.kubeconfig), *options,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode().strip()
        await read(address)
        yield address
    finally:
        process.terminate()
        await process.wait()


async def read(address: str) -> None:
    """Return as soon as the page has the cluster's state."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session, asyncio.timeout(SECONDS):
        while (answer := await session.get(address)).status == 503:
            answer.close()
            await asyncio.sleep(0.2)


def apply(control_plane: ControlPlane, namespace: str) -> None:
    """Apply a model, and a node for it."""
    control_plane.kubectl("apply", "--filename=-", input=listed(l4_node(f"l4-{namespace}")))
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat"), autoscaler("chat")
    )
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=manifests)
    control_plane.kubectl(
        "wait", "va/chat", f"--namespace={namespace}", "--for=condition=Ready=false", "--timeout=60s"
    )


async def test_the_page_shows_the_fleet_and_plans_what_if(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """On a desktop and on a phone, in light and dark, nothing overflows and nothing violates its policy."""
    apply(control_plane, namespace)
    try:
        async with dashboard(control_plane, namespace) as address, browser() as page:
            await page.open(address)
            assert "token" not in await page.text("location.href")
            text = await page.text()
            assert f"{namespace}/meta/llama-3.1-8b" in text
            assert "MetricsUnavailable" in text
            assert f"l4-{namespace}" in text
            grounds = set()
            for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light")):
                await page.show(width=width, scheme=scheme)
                assert await page.text(OVERFLOW) == "0", (width, scheme)
                grounds.add(await page.text("getComputedStyle(document.body).backgroundColor"))
            assert len(grounds) == 2
            await page.submit("document.querySelector('a[href=\"/what-if\"]').click()")
            assert "Computes a plan" in await page.text()
            await page.submit(
                "document.querySelector('[name=nodes]').value = 2; document.querySelector('form').submit()"
            )
            assert "2 more nodes of 4 L4" in await page.text()
            assert await page.text(OVERFLOW) == "0"
            await page.submit(
                "document.querySelector('[name=factor]').value = '';"
                "document.querySelector('[name=drain]').selectedIndex = 1;"
                "document.querySelector('form').submit()"
            )
            assert "drained" in await page.text()
            assert page.problems == []
    finally:
        control_plane.kubectl("delete", "node", f"l4-{namespace}")


async def test_only_whoever_has_the_token_sees_the_page(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """Another site cannot read it, not even under a name that resolves to this machine."""
    async with dashboard(control_plane, namespace) as address, aiohttp.ClientSession() as session:
        base, _, token = address.partition("?token=")
        port = base.rstrip("/").rpartition(":")[2]
        cookie = {"Cookie": f"stowplan-dashboard-{port}={token}"}
        for path, headers, status in (
            ("", {}, 403),
            ("what-if", {}, 403),
            ("", {"Cookie": f"stowplan-dashboard-{port}=wrong"}, 403),
            ("?token=wrong", {}, 403),
            ("", cookie | {"Host": "evil.example"}, 421),
            ("", cookie, 200),
            ("what-if?factor=x", cookie, 400),
            ("nothing", cookie, 404),
            ("what-if", cookie, 200),
            ("", {"Cookie": f"stowplan-dashboard-{port}=\xff\udcfe"}, 403),
        ):
            async with session.get(f"{base}{path}", headers=headers) as answer:
                assert answer.status == status, path
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        async with session.get(address, allow_redirects=False) as answer:
            assert answer.status == 303
            assert {"HttpOnly", "SameSite=Strict"} <= {*answer.headers["Set-Cookie"].split("; ")}


async def test_the_shipped_role_can_read_everything_that_the_page_shows(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """Nothing is listed as not shown. The process itself needs nodes to run on."""
    rules = control_plane.kubectl("kustomize", str(MANIFESTS / "fleet-page")).stdout
    control_plane.kubectl("apply", "--server-side", "--field-manager=test", "--filename=-", input=rules)
    control_plane.kubectl("-n", SYSTEM, "scale", "deployment/stowplan-dashboard", "--replicas=0")
    try:
        account = control_plane.service_account_kubeconfig(SYSTEM, "stowplan-dashboard")
        scope = ("-A", "--interval", "5", "--system-namespace", SYSTEM, "--kubeconfig", str(account))
        async with dashboard(control_plane, namespace, *scope) as address:
            jar = aiohttp.CookieJar(unsafe=True)
            async with aiohttp.ClientSession(cookie_jar=jar) as session, session.get(address) as answer:
                assert "Not shown" not in await answer.text()
    finally:
        control_plane.kubectl("delete", "--filename=-", "--wait=false", input=rules)


async def test_in_a_cluster_users_log_in_with_tokens_and_need_the_rights_of_the_page(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """A token of nobody, and one of a user without rights, are refused with the reason."""
    for name in ("viewer", "nobody"):
        control_plane.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
    role, account = f"fleet-{namespace}", f"--serviceaccount={namespace}:viewer"
    lists = ("--verb=list", "--resource=pods,nodes,variantautoscalings.llmd.ai")
    control_plane.kubectl("create", "clusterrole", role, *lists)
    control_plane.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", account)
    tokens = {
        name: control_plane.kubectl("create", "token", name, f"--namespace={namespace}").stdout.strip()
        for name in ("viewer", "nobody")
    }
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        async with (
            dashboard(control_plane, namespace, "--in-cluster") as address,
            aiohttp.ClientSession(cookie_jar=jar) as session,
        ):
            assert "token" not in address
            async with session.get(address) as answer:
                assert answer.status == 401
            for token, reason in (
                ("x.y.z", "not valid in this cluster"),
                (tokens["nobody"], "may not list variantautoscalings, pods, nodes in all namespaces"),
                ("", "Enter a token."),
                ("x" * 20_000, ""),
            ):
                async with session.post(f"{address}login", data={"token": token}) as answer:
                    assert answer.status in (403, 413)
                    assert reason in await answer.text()
                    assert "Set-Cookie" not in answer.headers
            for kind in (
                "application/x-www-form-urlencoded; charset=nosuch",
                "multipart/form-data; boundary=x",
                "",
            ):
                headers = {"Content-Type": kind} if kind else {}
                async with session.post(f"{address}login", data=b"\xff\x00--", headers=headers) as answer:
                    assert answer.status == 403, kind
            async with session.post(f"{address}login", data={"token": tokens["viewer"]}) as answer:
                assert answer.status in (200, 503)
                assert "Log in" not in await answer.text()
            async with session.get(f"{address}what-if") as answer:
                assert answer.status in (200, 503)
    finally:
        control_plane.kubectl("delete", f"clusterrole/{role}", f"clusterrolebinding/{role}")
