"""The API of a simulated engine besides metrics, and the loaders of adapters that call it.

Paths, codes and fields are those of vLLM, and for adapters also those of SGLang. A completion is answered at
once and repeats the prompt; only the simulated requests model token times.

A loader is the real program, run as a kubelet would: it gets the address of its pod, the list of its
ConfigMap in a file that is replaced on changes, and a directory instead of its volumes. `hf` is replaced by a
program that creates an adapter, but fails for a source that ends in `missing`, and never ends for one that
ends in `hanging`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from aiohttp import web

from apiserver.schema.json import Json
from controller.expansion.adapters import LIST, LOADER, PROGRAM
from controller.observe.pods import is_ready
from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import end, spawn


@dataclass(slots=True)
class ServedModel:
    """The model that an engine serves, and its adapters."""

    model: str
    adapters: dict[str, str] = field(default_factory=dict)
    """The folder of each adapter, by name."""

    broken: frozenset[str] = frozenset()
    """Names of adapters that the engine cannot load."""


class OpenAiApi:
    """The request handlers; `served_by` returns the engine of a request."""

    def __init__(self, served_by: Callable[[web.Request], ServedModel]) -> None:
        self._served_by = served_by

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes to an application."""
        router.add_get("/v1/models", self._models)
        router.add_post("/v1/completions", self._complete)
        for prefix in ("/v1", ""):  # vLLM, SGLang
            router.add_post(f"{prefix}/load_lora_adapter", self._load)
            router.add_post(f"{prefix}/unload_lora_adapter", self._unload)

    async def _models(self, request: web.Request) -> web.Response:
        served = self._served_by(request)
        cards: list[Json] = [{"id": served.model, "object": "model", "root": served.model, "parent": None}]
        for name, path in served.adapters.items():
            cards.append({"id": name, "object": "model", "root": path, "parent": served.model})
        return web.json_response({"object": "list", "data": cards})

    async def _load(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name, path = _text(body, "lora_name"), _text(body, "lora_path")
        if name in served.adapters:
            raise _refusal(web.HTTPBadRequest, f"The lora adapter '{name}' has already been loaded.")
        if name in served.broken:
            raise _refusal(web.HTTPBadRequest, f"Call to add_lora method failed: {name} has a wrong rank")
        served.adapters[name] = path
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def _unload(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name = _text(body, "lora_name")
        if served.adapters.pop(name, None) is None:
            raise _refusal(web.HTTPNotFound, f"The lora adapter '{name}' cannot be found.")
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def _complete(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name, prompt = _text(body, "model"), _text(body, "prompt")
        if name != served.model and name not in served.adapters:
            raise _refusal(web.HTTPNotFound, f"The model `{name}` does not exist.")
        tokens = len(prompt.split())
        usage = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens}
        choice = {"index": 0, "text": prompt, "finish_reason": "stop"}
        return web.json_response(
            {"object": "text_completion", "model": name, "choices": [choice], "usage": usage}
        )


async def _body(request: web.Request) -> Json:
    try:
        body = await request.json()
    except ValueError as error:
        raise _refusal(web.HTTPBadRequest, f"no JSON: {error}") from error
    if not isinstance(body, dict):
        raise _refusal(web.HTTPBadRequest, "not a JSON object")
    return body


def _text(body: Json, name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text:
        raise _refusal(web.HTTPBadRequest, f"{name}: a text is needed")
    return text


def _refusal(kind: type[web.HTTPError], message: str) -> web.HTTPError:
    error = {"message": message, "code": kind.status_code}
    return kind(text=json.dumps({"error": error}), content_type="application/json")


_HF: Final = """#!/bin/sh
case $2 in
*missing) echo "Fetching 4 files"; echo "404 Client Error: Repository not found" >&2; exit 1 ;;
*hanging) exec sleep 600 ;;
*) touch "$4/adapter_config.json" ;;
esac
"""
_PATIENCE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class _RunningApi:
    process: subprocess.Popen[str]
    folder: Path
    list_name: str


class LoaderHost:
    """All loaders of some pods, with their files in one directory. Use as `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, _RunningApi] = {}
        self._programs = folder / "bin"
        self._programs.mkdir(parents=True)
        (self._programs / "hf").write_text(_HF, encoding="utf-8")
        (self._programs / "hf").chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(list(self._running))

    def match(self, pods: Iterable[Json], lists: Mapping[str, Json]) -> None:
        """Run a loader for each Ready pod that has one, and update their lists, given by ConfigMap name."""
        ready_pods = {pod["metadata"]["uid"]: pod for pod in pods if _loader_of(pod) and is_ready(pod)}
        self._stop([uid for uid in self._running if uid not in ready_pods])
        for uid, pod in ready_pods.items():
            if uid not in self._running:
                self._start(uid, pod, lists)
        for running in self._running.values():
            self._write(running.folder, lists.get(running.list_name, {}))

    def _start(self, uid: str, pod: Json, lists: Mapping[str, Json]) -> None:
        folder, address, container = self._folder / uid, pod["status"]["podIP"], _loader_of(pod)
        folder.mkdir()
        volume = next(item for item in pod["spec"]["volumes"] if item["name"] == LOADER)
        list_name = volume["configMap"]["name"]
        self._write(folder, lists.get(list_name, {}))
        options = json.loads(container["command"][-1])
        options |= {
            "host": address,
            "engine": options["engine"].replace("127.0.0.1", address),
            "root": str(folder),
            "list": str(folder / LIST),
        }
        environment = {
            **os.environ,
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "http_proxy": "http://127.0.0.1:1",  # as if downloads used a proxy; engines are not behind it
        }
        command = [sys.executable, str(folder / PROGRAM), json.dumps(options)]
        with (folder / "log").open("wb") as log:
            process = spawn(command, directory=folder, environment=environment, output=log)
        self._running[uid] = _RunningApi(process, folder, list_name)

    def _stop(self, uids: Iterable[str]) -> None:
        """End all of these loaders. Raises ComponentCrashedError if one did not end by itself with code 0."""
        faults = [fault for uid in uids if (fault := _fault(self._running.pop(uid)))]
        if faults:
            raise ComponentCrashedError("; ".join(faults))

    def _write(self, folder: Path, config_map: Json) -> None:
        """Replace each file atomically, as the kubelet does."""
        for name, text in (config_map.get("data") or {LIST: "{}"}).items():
            fresh = folder / "fresh"
            fresh.write_text(text, encoding="utf-8")
            fresh.rename(folder / name)


def _fault(running: _RunningApi) -> str:
    """End a loader; return what was wrong with its end, or nothing."""
    code = end(running.process, patience_seconds=_PATIENCE_SECONDS)
    if code == 0:
        return ""
    how = "did not end when it was told to" if code is None else f"ended with code {code}"
    lines = (running.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return f"the adapter loader of a pod {how}: {lines[-1] if lines else 'its log is empty'}"


def _loader_of(pod: Json) -> Json:
    containers: list[Json] = pod["spec"]["containers"]
    return next((item for item in containers if item["name"] == LOADER), {})
