"""Fixtures that run `stowplan plan` in a directory with files, and a small cluster to plan for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.manifests import Manifest, deployment, l4_node, listed, variant
from support.plan_verb import Granted, Parts, Plan, World

from apiserver import cli


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Return a function that writes files into an empty directory and runs the command there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(
        *arguments: str, given: str = "", files: dict[str, str] | None = None
    ) -> tuple[int, str, list[str]]:
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        code = cli.main(["plan", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return run


@pytest.fixture
def parts() -> Parts:
    """Return a function that creates the variants `chat` and `code`, of 1 accelerator each, and nodes.

    A replica serves 10 requests per second.
    """

    def make(*, nodes: int = 2, size: int = 4, demand: float | None = 8) -> list[Manifest]:
        names = [f"node-{number}" for number in range(1, nodes + 1)]
        made = [l4_node(name, accelerators=size, labels={"kubernetes.io/hostname": name}) for name in names]
        for name in ("chat", "code"):
            made.append(deployment(name, product="NVIDIA-L4", accelerators=1))
            made.append(variant(name, modelID=name, accelerator="L4") | _status(demand))
        return made

    return make


@pytest.fixture
def world(parts: Parts) -> World:
    """Return a function that creates the same objects as one document."""
    return lambda **fields: listed(*parts(**fields))


@pytest.fixture
def granted() -> Granted:
    """Return a function that reads the replicas of each variant from the JSON output."""
    return lambda out: {item["name"]: item["replicas"] for item in json.loads(out)["plan"]["decisions"]}


def _status(demand: float | None) -> Manifest:
    told: Manifest = {
        "reason": "Steady",
        "message": "as exported",
        "capacityPerReplica": "10",
        "capacitySource": "Learned",
    }
    if demand is not None:
        told["demand"] = {
            "requestsPerSecond": f"{demand:g}",
            "upperRequestsPerSecond": f"{demand:g}",
            "startSeconds": 0,
        }
    return {"status": {"decision": told}}
