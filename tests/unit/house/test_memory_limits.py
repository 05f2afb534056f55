"""Memory requests and limits in the manifests, compared with the measured peaks in `docs/design/scale.md`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
MARGIN = 1.25
TOGETHER = {
    "webhooks": ("webhooks",),
    "apiserver": ("apiserver",),
    "controller": ("controller", "solver"),
}
"""The processes that run in the container of each component."""


def measured() -> list[dict[str, int]]:
    """Return the rows of the table in MiB, fewest objects first; cells without a measurement are left out."""
    text = (TOP / "docs" / "design" / "scale.md").read_text("utf-8")
    (table,) = re.findall(r"^\| objects \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    names = ("webhooks", "apiserver", "controller", "solver")
    rows = [[cell.strip() for cell in line.strip("|").split("|")[1:]] for line in table.splitlines()]
    return [
        {name: int(cell) for name, cell in zip(names, row, strict=True) if cell.isdigit()} for row in rows
    ]


def resources(component: str) -> dict[str, Any]:
    """Return the resource requests and limits of a component."""
    text = (TOP / "manifests" / "base" / "deployments.yaml").read_text("utf-8")
    (found,) = (
        item for item in yaml.safe_load_all(text) if item["metadata"]["name"] == f"stowplan-{component}"
    )
    value: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]["resources"]
    return value


@pytest.mark.parametrize("component", TOGETHER)
def test_memory_requests_and_limits_exceed_the_measured_peaks_by_a_margin(component: str) -> None:
    """The request covers the smallest measured cluster, the limit the highest measured peak."""
    rows = [sum(row.get(name, 0) for name in TOGETHER[component]) for row in measured()]
    given = {
        kind: int(resources(component)[kind]["memory"].removesuffix("Mi")) for kind in ("requests", "limits")
    }

    assert given["requests"] >= MARGIN * rows[0]
    assert given["limits"] >= MARGIN * max(rows)
