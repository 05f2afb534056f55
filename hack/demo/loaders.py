"""Loaders of adapters for simulated engines: the real program, run as a kubelet would.

Each loader gets the address of its pod, the list of its ConfigMap in a file that is replaced on changes, and
a directory instead of its volumes. `hf` is replaced by a program that creates an adapter, but fails for a
source that ends in `missing`, and never ends for one that ends in `hanging`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from apiserver.schema.json import Json
from controller.expansion.adapters import LIST, LOADER, PROGRAM
from controller.observe.pods import is_ready
from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import end, spawn

_HF: Final = """#!/bin/sh
case $2 in
*missing) echo "Fetching 4 files"; echo "404 Client Error: Repository not found" >&2; exit 1 ;;
*hanging) exec sleep 600 ;;
*) touch "$4/adapter_config.json" ;;
esac
"""
_PATIENCE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[str]
    folder: Path
    list_name: str


class LoaderHost:
    """All loaders of some pods, with their files in one directory. Use as `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, _Running] = {}
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
        wanted = {pod["metadata"]["uid"]: pod for pod in pods if _loader_of(pod) and is_ready(pod)}
        self._stop([uid for uid in self._running if uid not in wanted])
        for uid, pod in wanted.items():
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
        self._running[uid] = _Running(process, folder, list_name)

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


def _fault(running: _Running) -> str:
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
