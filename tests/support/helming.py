"""The chart of this tree, and the real helm."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from apiserver.serving.config import parse
from controller.config import ControllerConfig
from hack.controlplane.binaries import provide_module
from hack.controlplane.cache import hold_lock
from hack.controlplane.process import kept_environment
from hack.controlplane.progress import ProgressLine
from hack.packaging.chart import Sources, chart_files
from hack.packaging.programs import HELM, KUBECTL
from hack.packaging.rendering import MANIFESTS

VALUES = {path.stem: path for path in sorted((MANIFESTS / "values").iterdir())}
"""Files of values for common clusters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Helm:
    """Helm with one chart, in its own directory."""

    program: Path
    kubectl: Path
    folder: Path
    sources: Sources
    files: Mapping[str, str]
    """The texts of the chart, by their paths in it."""

    @classmethod
    def provided(cls, folder: Path, *, stored: Path) -> Helm:
        """Find or build the programs, and write the chart.

        Its renderings take seconds of CPU time, so that the first parallel worker stores them for all.
        """
        programs = provide_module(HELM, ProgressLine()) | provide_module(KUBECTL, ProgressLine())
        with hold_lock(stored.with_suffix(".lock")):
            if not stored.exists():
                stored.write_bytes(pickle.dumps(Sources(programs["kubectl"])))
        sources: Sources = pickle.loads(stored.read_bytes())  # noqa: S301 (it is our own)
        files = chart_files(sources)
        found = cls(
            program=programs["helm"],
            kubectl=programs["kubectl"],
            folder=folder,
            sources=sources,
            files=files,
        )
        for name, text in files.items():
            path = found.chart / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return found

    @property
    def chart(self) -> Path:
        """The directory of the chart."""
        return self.folder / "stowplan"

    def run(
        self, *arguments: str, values: Mapping[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run helm, with values as in a user's file."""
        given = ("--values=-",) if values is not None else ()
        return subprocess.run(
            [self.program, *arguments, *given],
            input=json.dumps(values),
            env=kept_environment() | {"HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )

    def rendered(self, values: Mapping[str, Any], *, namespace: str) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the rendered objects by kind, namespace and name."""
        done = self.run("template", "release", str(self.chart), f"--namespace={namespace}", values=values)
        assert done.returncode == 0, done.stderr
        return by_name([item for item in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if item])


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return objects by kind, namespace and name."""
    found: dict[tuple[str, ...], dict[str, Any]] = {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in objects
    }
    assert len(found) == len(objects)
    return found


def values_of(name: str) -> dict[str, Any]:
    """Return the values of a file."""
    values: dict[str, Any] = yaml.safe_load(VALUES[name].read_text(encoding="utf-8"))
    return values


def deployments(objects: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the specifications of Deployments by component."""
    return {
        item["metadata"]["name"].removeprefix("stowplan-"): item["spec"]
        for item in objects
        if item["kind"] == "Deployment"
    }


def controller_serving(arguments: Sequence[str]) -> tuple[str, int]:
    """Return log level and port of a controller that is started with these arguments."""
    serving = parse(ControllerConfig, program="controller", description="", arguments=arguments).serving
    return serving.log_level, serving.port


def pod_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of the pods of a Deployment."""
    pod: dict[str, Any] = spec["template"]["spec"]
    return pod
