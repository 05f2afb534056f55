"""A cluster of an earlier release with our processes, and clients that use it during an upgrade."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import yaml

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Expired, NotFound, Throttled
from apiserver.cluster.resource import Resource, Selection
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.schema.json import without_depths
from controller.commands.upgrade.calls import patiently
from hack.controlplane import ControlPlane
from hack.controlplane.client import PathNotServedError
from hack.installation.manifests import documents
from support import command_line

ERAS: Final = Path(__file__).parents[1] / "released_definitions"
CRD: Final = "variantautoscalings.llmd.ai"
NAMESPACE: Final = "models"
Manifest = dict[str, Any]

_ADMISSION: Final = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
)
_LOOKS: Final = 100
_PACE_SECONDS: Final = 0.1
"""Time between three calls of `Traffic` and the next three, so that it leaves the CPU to what is upgraded."""

_TAKEN_UP_SECONDS: Final = 1.0
"""Time in seconds until the API server applies changes of definitions and webhook configurations."""


def resource(version: str) -> Resource:
    """Return the resource of VariantAutoscalings in one version."""
    return Resource(group="llmd.ai", version=version, plural="variantautoscalings", kind="VariantAutoscaling")


OLD, NEW = resource("v1alpha1"), resource("v1alpha2")


def samples(era: str) -> list[Manifest]:
    """Return the objects of a cluster of an earlier release."""
    text = (ERAS / f"{era}-objects.yaml").read_text(encoding="utf-8")
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def copies(manifests: Sequence[Manifest], count: int) -> list[Manifest]:
    """Return a number of objects with unique names, copied from the manifests in turn."""
    made = []
    for number in range(count):
        manifest = copy.deepcopy(manifests[number % len(manifests)])
        manifest["metadata"]["name"] += f"-{number:04}"
        made.append(manifest)
    return made


def said(item: Manifest) -> Manifest:
    """Return an object without the fields that the API server and our webhooks manage."""
    metadata = {name: dict(item["metadata"].get(name) or {}) for name in ("labels", "annotations")}
    metadata["annotations"].pop(WRITTEN_BY, None)
    return {"metadata": metadata, "spec": item.get("spec"), "status": item.get("status")}


def definition(control_plane: ControlPlane) -> Manifest:
    """Return the current definition."""
    with control_plane.client() as client:
        return client.value("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}")


def enter(control_plane: ControlPlane, era: str) -> None:
    """Put the cluster into the state of an earlier release: its definition, and no objects.

    Our other kinds stay: if a definition is deleted while its storage is being set up, the API server retries
    only after minutes.
    """
    control_plane.kubectl("delete", "crd", CRD, "--ignore-not-found", "--wait")
    apply_definition(control_plane, era)


def apply_definition(control_plane: ControlPlane, era: str) -> None:
    """Apply the definition of an earlier release, as its documentation says."""
    path = str(ERAS / f"{era}-definition.yaml")
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--filename", path)
    control_plane.wait_until_established(CRD)


async def fill(
    control_plane: ControlPlane, manifests: Sequence[Manifest], *, created: Sequence[Manifest] = ()
) -> dict[str, Manifest]:
    """Apply objects as users did before our installation, with their status; return their content by name.

    Those in `created` are too large for `kubectl apply`.
    """
    await asyncio.sleep(_TAKEN_UP_SECONDS)
    async with without_admission(control_plane):
        await asyncio.to_thread(apply, control_plane, manifests)
        for manifest in created:
            await request(control_plane, "POST", OLD.path(NAMESPACE), manifest)
    for manifest in manifests:
        if "status" in manifest:
            path = OLD.path(NAMESPACE, manifest["metadata"]["name"])
            stored = await request(control_plane, "GET", path)
            await request(
                control_plane,
                "PUT",
                f"{path}/status?fieldManager=stowplan",
                stored | {"status": manifest["status"]},
            )
    return await read(control_plane, OLD)


async def request(
    control_plane: ControlPlane,
    method: str,
    path: str,
    value: Manifest | None = None,
    *,
    media_type: str = "application/json",
) -> Manifest:
    """Send a request as administrator, while others run; return the response. Raises as `Client.call`.

    It is repeated while the API server asks for that, as it does after the change of a definition.
    """

    def send() -> Manifest:
        with control_plane.client() as client:
            answer = client.call(method, path, value, media_type=media_type)
            answered: Manifest = json.loads(without_depths(answer))
            return answered

    for _ in range(_LOOKS):
        try:
            return await asyncio.to_thread(send)
        except PathNotServedError as error:
            if ": 429:" not in str(error):
                raise
            await asyncio.sleep(1.0)
    return await asyncio.to_thread(send)


async def items(control_plane: ControlPlane, where: Resource) -> list[Manifest]:
    """Return all objects in one version."""
    found: list[Manifest] = (await request(control_plane, "GET", where.path(None)))["items"]
    return found


def apply(control_plane: ControlPlane, manifests: Sequence[Manifest]) -> subprocess.CompletedProcess[str]:
    """Apply manifests without their status with plain `kubectl apply`."""
    items = [{name: item for name, item in manifest.items() if name != "status"} for manifest in manifests]
    return control_plane.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", input=documents(items))


async def read(control_plane: ControlPlane, where: Resource) -> dict[str, Manifest]:
    """Return the content of all objects, by name."""
    return {item["metadata"]["name"]: said(item) for item in await items(control_plane, where)}


def converted(objects: Sequence[Manifest], *options: str) -> dict[str, Manifest]:
    """Return what `stowplan convert` makes of the content of objects, by name."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}, file)
        file.flush()
        printed = command_line.stowplan("convert", "-f", file.name, *options).out
    return {item["metadata"]["name"]: said(item) for item in yaml.safe_load(printed)["items"]}


async def stowplan(control_plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    process = await _start(control_plane, arguments)
    output, _ = await process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode or 0, stdout=output.decode())


_STEPPED: Final = Path(__file__).with_name("stepped.py")
Point = tuple[str, str]
"""The beginning of a step's title, and whether it `begins` or is `on its way`."""
_PART: Final = re.compile(r"(\d+) of (\d+)")


async def killed(
    control_plane: ControlPlane,
    *arguments: str,
    points: Sequence[Point],
    then: Callable[[Point], object] = lambda _: None,
) -> tuple[list[Point], subprocess.CompletedProcess[str]]:
    """Run a command again until it ends, killed at each of these points that it reaches in their order.

    Return these points, and the result of the last run. The command waits after each line, so that it is
    still there. `then` is called before it is started again.
    """
    process = await _start(control_plane, arguments, str(_STEPPED), stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    rest, kills, titles = list(points), list[Point](), {title for title, _ in points}
    pid, step, output = 0, "", ""
    async for line in process.stdout:
        output += line.decode()
        prefix, _, text = line.decode().partition("] ")
        title = next((title for title in titles if text.startswith(title)), "")
        step = title or step
        part = _PART.match(text)
        point = (step, "begins" if title else "on its way" if part and part[1] != part[2] else "at its end")
        if prefix.strip().isdecimal():
            pid, step, output = int(prefix), "", ""
        elif prefix.startswith("[") and point in rest:
            os.kill(pid, signal.SIGKILL)
            kills.append(point)
            rest = rest[rest.index(point) + 1 :]
            then(point)
            continue
        process.stdin.write(b"\n")
    return kills, subprocess.CompletedProcess(arguments, await process.wait(), stdout=output)


async def _start(
    control_plane: ControlPlane, arguments: Sequence[str], *program: str, stdin: int | None = None
) -> asyncio.subprocess.Process:
    where = ("--kubeconfig", str(control_plane.kubeconfig))
    command = (sys.executable, *(program or ("-m", "apiserver.cli")), *arguments, *where)
    return await asyncio.create_subprocess_exec(
        *command, stdin=stdin, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )


class Traffic:
    """Lists, reads and writes in one version continuously, and records every failed call.

    Like every client, it waits if the API server asks for that.
    """

    def __init__(self, control_plane: ControlPlane, where: Resource, busy: str) -> None:
        self._kubeconfig = control_plane.kubeconfig
        self._where = where
        self._busy = busy
        self.calls = 0
        self.failures: list[str] = []
        self._progress = asyncio.Condition()

    async def run(self) -> None:
        """Send requests until cancelled."""
        async with await Cluster.connect(self._kubeconfig) as cluster:
            while True:
                for call in (self._list, self._get, self._write):
                    try:
                        await patiently(partial(call, cluster))
                        self.calls += 1
                    except ClusterError as error:
                        self.failures.append(f"{call.__name__} {time.time():.2f}: {error.message}")
                async with self._progress:
                    self._progress.notify_all()
                await asyncio.sleep(_PACE_SECONDS)

    async def has_called(self, *, times: int) -> None:
        """Wait until it has sent that many requests. Raises TimeoutError."""
        async with asyncio.timeout(60), self._progress:
            await self._progress.wait_for(lambda: self.calls + len(self.failures) >= times)

    async def _list(self, cluster: Cluster) -> None:
        await cluster.list(self._where, namespace=NAMESPACE)

    async def _get(self, cluster: Cluster) -> None:
        await cluster.get(self._where, self._busy, namespace=NAMESPACE)

    async def _write(self, cluster: Cluster) -> None:
        operation = {"op": "add", "path": "/metadata/labels", "value": {"calls": str(self.calls)}}
        await cluster.patch_json(self._where, self._busy, [operation], namespace=NAMESPACE)


class Follower:
    """Follows all objects in one version, like every controller: list, watch, and list again if required."""

    def __init__(self, control_plane: ControlPlane, where: Resource) -> None:
        self._control_plane = control_plane
        self._selection = Selection(resource=where)
        self.objects: dict[str, Manifest] = {}
        self.broken: list[str] = []
        self.lists = 0
        self._version = ""

    async def run(self) -> None:
        """Follow until cancelled. A watch may end, and be too old to resume, but must not fail."""
        async with await Cluster.connect(self._control_plane.kubeconfig) as cluster:
            while True:
                try:
                    await self._follow(cluster)
                except Throttled as error:
                    await asyncio.sleep(error.retry_after_seconds or 1.0)
                except NotFound as error:
                    if self.lists:
                        self.broken.append(error.message)
                    await asyncio.sleep(0.05)  # the version may be served soon
                except ClusterError as error:
                    self.broken.append(error.message)
                    await asyncio.sleep(0.05)

    async def _follow(self, cluster: Cluster) -> None:
        """Watch until the end of a watch or an error, after a list if there is no version to resume from."""
        try:
            self._version = self._version or await self._list(cluster)
            async for event in cluster.watch(
                self._selection, resource_version=self._version, timeout_seconds=300
            ):
                self._version = event.resource_version
                self._take(event.type, event.object)
        except Expired:
            self._version = ""

    async def _list(self, cluster: Cluster) -> str:
        found, version = await cluster.list_kept(self._selection, lambda item: item)
        self.lists += 1
        self.objects = {item["metadata"]["name"]: item for item in found}
        return version

    def _take(self, kind: str, item: Manifest) -> None:
        if kind in {"ADDED", "MODIFIED"}:
            self.objects[item["metadata"]["name"]] = item
        elif kind == "DELETED":
            self.objects.pop(item["metadata"]["name"], None)

    async def has_caught_up(self) -> bool:
        """Tell whether it has the content of a list within a few seconds."""
        for _ in range(_LOOKS):
            stored = await read(self._control_plane, self._selection.resource)
            if stored == {name: said(item) for name, item in self.objects.items()}:
                return True
            await asyncio.sleep(0.05)
        return False


@asynccontextmanager
async def running(*jobs: Traffic | Follower) -> AsyncIterator[None]:
    """Run jobs during a block."""
    tasks = [asyncio.create_task(job.run()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def without_admission(control_plane: ControlPlane) -> AsyncIterator[None]:
    """Remove our admission during a block, to store objects as before our installation."""
    with control_plane.client() as client:
        taken = {path: client.value("GET", f"{path}/stowplan") for path in _ADMISSION}
        for path in taken:
            client.call("DELETE", f"{path}/stowplan")
    await asyncio.sleep(_TAKEN_UP_SECONDS)
    yield
    with control_plane.client() as client:
        for path, found in taken.items():
            metadata = {name: found["metadata"][name] for name in ("name", "labels")}
            client.call("POST", path, found | {"metadata": metadata})
    await asyncio.sleep(_TAKEN_UP_SECONDS)


async def annotations_of(control_plane: ControlPlane) -> list[dict[str, str]]:
    """Return the annotations of every object."""
    return [item["metadata"].get("annotations", {}) for item in await items(control_plane, OLD)]
