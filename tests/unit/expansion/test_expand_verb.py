"""The command `stowplan expand`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.samples import SAMPLES

from controller.commands.expand.run import main

FIXED = str(SAMPLES / "model" / "fixed.yaml")
MODEL = """\
apiVersion: registry.volcano.sh/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  backends:
  - {name: a, type: vLLM, modelURI: hf://a/b, minReplicas: 1, maxReplicas: 1, workers: [{}]}
  - {name: b, type: vLLM, modelURI: hf://a/b, minReplicas: 1, maxReplicas: 1, workers: [{image: engine}]}
"""

ROUTE = """\
apiVersion: networking.volcano.sh/v1alpha1
kind: ModelRoute
metadata: {name: chat}
spec:
  modelName: chat
  rateLimit: {inputTokensPerUnit: 1000}
  rules: [{targetModels: [{modelServerName: l4}]}]
---
apiVersion: networking.volcano.sh/v1alpha1
kind: ModelServer
metadata: {name: l4}
spec: {inferenceEngine: vLLM, workloadSelector: {matchLabels: {app: l4}}, workloadPort: {port: 8000}}
"""


def test_the_command_prints_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    """There is one document per object, in the order of creation."""
    assert main(["-f", FIXED, "-n", "chat"]) == 0

    documents = [*yaml.safe_load_all(capsys.readouterr().out)]
    assert [item["kind"] for item in documents] == ["Deployment", "Service", "ModelServer", "ModelRoute"]
    assert {item["metadata"]["namespace"] for item in documents} == {"chat"}


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The objects are one list."""
    assert main(["-f", FIXED, "-o", "json"]) == 0

    assert len(json.loads(capsys.readouterr().out)) == 4


def test_the_group_of_the_releases_of_kthena_is_written_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Routes behind Gateways lead to servers of their group. Of two with the same names, one fails."""
    file = tmp_path / "routes.yaml"
    file.write_text(f"{ROUTE}---\n{ROUTE.replace('networking', 'networking.serving')}", encoding="utf-8")
    options = ["-f", FIXED, "-f", str(file), "-n", "chat", "--gateways", "infra/inference"]
    assert main([*options, "--routing-group=networking.serving.volcano.sh"]) == 1

    said = capsys.readouterr()
    documents = [*yaml.safe_load_all(said.out)]
    written = {item["kind"]: item["apiVersion"] for item in documents}
    assert written["ModelServer"] == written["ModelRoute"] == "networking.serving.volcano.sh/v1alpha1"
    pools = [item["metadata"]["name"] for item in documents if item["kind"] == "InferencePool"]
    assert pools == ["qwen-0-5b-l4", "l4"]
    assert said.err.splitlines()[-1] == (
        f"{file}:14: error: ModelRoute chat: metadata.name: not translated: InferencePool l4 is printed for"
        " a ModelRoute of networking.volcano.sh/v1alpha1"
    )


def test_a_backend_that_cannot_be_expanded_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are printed, and the exit code is 1."""
    file = tmp_path / "model.yaml"
    file.write_text(MODEL, encoding="utf-8")

    assert main(["-f", str(file)]) == 1
    said = capsys.readouterr()
    assert "name: qwen-b" in said.out
    assert "qwen-a" not in said.out
    assert said.err.splitlines()[-1] == (
        f"{file}:1: error: spec.backends[0].workers[0].image: an engine needs an image: there is none to"
        " run; this backend is omitted"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODEL.replace("vLLM", "vllm"), 'Unsupported value: "vllm"'),
        ("kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n", "contains no Model"),
        ("a: [", "error:"),
    ],
)
def test_nothing_is_printed_for_invalid_input(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise incomplete output could be applied."""
    file = tmp_path / "model.yaml"
    file.write_text(text, encoding="utf-8")

    assert main(["-f", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_routes_are_translated_for_gateways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This includes the routes of Models and of the files; what a Gateway cannot express causes a warning."""
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE, encoding="utf-8")

    assert main(["-f", FIXED, "-f", str(file), "--gateways", "infra/inference", "-o", "json"]) == 0
    said = capsys.readouterr()
    made = [(item["kind"], item["metadata"]["name"]) for item in json.loads(said.out)[4:]]
    assert made == [
        ("InferencePool", "qwen-0-5b-l4"),
        ("HTTPRoute", "qwen-0.5b"),
        ("InferencePool", "l4"),
        ("HTTPRoute", "chat"),
    ]
    assert f"{file}:1: Warning: ModelRoute chat: spec.rateLimit: a Gateway does not count tokens" in said.err


def test_an_invalid_reference_to_gateways_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No objects are printed."""
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE, encoding="utf-8")

    assert main(["-f", str(file), "--gateways", "Infra"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        "error: ModelRoute chat: metadata.annotations[stowplan.dev/parent-refs]: 'Infra' is not" in said.err
    )


def test_the_documentation_shows_the_output_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Kinds and names in docs/models.md are compared in order."""
    page = (SAMPLES.parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    shown = page.partition("```console")[2].partition("```")[0].splitlines()
    main(["-f", FIXED])
    printed = capsys.readouterr().out

    kinds = [line for line in shown if line.startswith("kind: ")]
    assert kinds == [line for line in printed.splitlines() if line.startswith("kind: ")]
    assert all(f"\n{line}\n" in printed for line in shown if line.startswith("  name: "))


def test_empty_annotations_are_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are null in a file from which the last annotation was deleted."""
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE.replace("{name: chat}", "{name: chat, annotations: , labels: }"), encoding="utf-8")
    assert main(["-f", str(file), "--gateways", "infra/inference"]) == 0

    assert "kind: HTTPRoute" in capsys.readouterr().out
