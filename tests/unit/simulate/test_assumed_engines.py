"""`stowplan simulate -f` on the export of a cluster with engines, for which nobody asks for decisions yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.manifests import deployment, l4_node, listed

from apiserver import cli


def test_engines_of_an_export_without_variants_are_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One variant is assumed for each Deployment, and said so in the warnings and in JSON."""
    workload = deployment("chat", product="NVIDIA-L4", accelerators=1)
    workload["spec"]["template"]["spec"]["containers"][0]["args"] = ["--model=meta-llama/Llama-3.2-3B"]
    nameless = deployment("dark", product="NVIDIA-L4", accelerators=1)
    live, trace = tmp_path / "live.json", tmp_path / "trace.csv"
    live.write_text(listed(l4_node("n"), workload, nameless))
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,10\n20,100,10\n")
    options = ("--trace", str(trace), "--policy", "constant:1", "-o", "json")

    code = cli.main(["simulate", "-f", str(live), *options])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["assumed"] == ["Deployment default/chat"]
    assert [item["model_id"] for item in found["scenario"]["models"]] == ["meta-llama/Llama-3.2-3B"]
    assert sum("1 variant is assumed" in text for text in found["warnings"]) == 1
    assert any("Deployment default/dark" in text for text in found["warnings"])


def test_an_export_without_engines_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What to export is said."""
    live = tmp_path / "live.json"
    live.write_text(listed(l4_node("n")))

    assert cli.main(["simulate", "-f", str(live)]) == 2
    errors = capsys.readouterr().err
    assert "nothing to simulate: the input contains no VariantAutoscaling" in errors
