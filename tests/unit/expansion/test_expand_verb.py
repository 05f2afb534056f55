"""The command `stowplan expand`."""

from __future__ import annotations

import json

import pytest
import yaml
from support.samples import SAMPLES
from support.verbs import Stowplan

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


def test_the_command_prints_manifests(stowplan: Stowplan) -> None:
    """There is one document per object, in the order of creation."""
    code, out, _ = stowplan("expand", "-f", FIXED, "-n", "chat")

    assert code == 0
    documents = [*yaml.safe_load_all(out)]
    assert [item["kind"] for item in documents] == ["Deployment", "Service", "ModelServer", "ModelRoute"]
    assert {item["metadata"]["namespace"] for item in documents} == {"chat"}


def test_the_command_prints_json(stowplan: Stowplan) -> None:
    """The objects are one list."""
    code, out, _ = stowplan("expand", "-f", FIXED, "-o", "json")

    assert (code, len(json.loads(out))) == (0, 4)


def test_the_group_of_the_releases_of_kthena_is_written_on_request(stowplan: Stowplan) -> None:
    """Routes behind Gateways lead to servers of their group. Of two with the same names, one fails."""
    text = f"{ROUTE}---\n{ROUTE.replace('networking', 'networking.serving')}"
    options = ["-f", FIXED, "-f", "r.yaml", "-n", "chat", "--gateways", "infra/inference"]
    code, out, err = stowplan(
        "expand", *options, "--routing-group=networking.serving.volcano.sh", r_yaml=text
    )

    assert code == 1
    documents = [*yaml.safe_load_all(out)]
    written = {item["kind"]: item["apiVersion"] for item in documents}
    assert written["ModelServer"] == written["ModelRoute"] == "networking.serving.volcano.sh/v1alpha1"
    pools = [item["metadata"]["name"] for item in documents if item["kind"] == "InferencePool"]
    assert pools == ["qwen-0-5b-l4", "l4"]
    assert err[-1] == (
        "r.yaml:14: error: ModelRoute chat: metadata.name: not translated: InferencePool l4 is printed for"
        " a ModelRoute of networking.volcano.sh/v1alpha1"
    )


def test_a_backend_that_cannot_be_expanded_is_reported(stowplan: Stowplan) -> None:
    """The others are printed, and the exit code is 1."""
    code, out, err = stowplan("expand", "-f", "m.yaml", m_yaml=MODEL)

    assert code == 1
    assert "name: qwen-b" in out
    assert "qwen-a" not in out
    assert err[-1] == (
        "m.yaml:1: error: spec.backends[0].workers[0].image: an engine needs an image: there is none to"
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
def test_nothing_is_printed_for_invalid_input(text: str, said: str, stowplan: Stowplan) -> None:
    """Otherwise incomplete output could be applied."""
    code, out, err = stowplan("expand", "-f", "m.yaml", m_yaml=text)

    assert (code, out) == (2, "")
    assert said in "\n".join(err)


def test_routes_are_translated_for_gateways(stowplan: Stowplan) -> None:
    """This includes the routes of Models and of the files; what a Gateway cannot express causes a warning."""
    options = ("-f", FIXED, "-f", "r.yaml", "--gateways", "infra/inference", "-o", "json")
    code, out, err = stowplan("expand", *options, r_yaml=ROUTE)

    assert code == 0
    made = [(item["kind"], item["metadata"]["name"]) for item in json.loads(out)[4:]]
    assert made == [
        ("InferencePool", "qwen-0-5b-l4"),
        ("HTTPRoute", "qwen-0.5b"),
        ("InferencePool", "l4"),
        ("HTTPRoute", "chat"),
    ]
    warning = "r.yaml:1: Warning: ModelRoute chat: spec.rateLimit: a Gateway does not count tokens"
    assert any(line.startswith(warning) for line in err)


def test_an_invalid_reference_to_gateways_is_an_error(stowplan: Stowplan) -> None:
    """No objects are printed."""
    code, out, err = stowplan("expand", "-f", "r.yaml", "--gateways", "Infra", r_yaml=ROUTE)

    assert (code, out) == (2, "")
    reason = "error: ModelRoute chat: metadata.annotations[stowplan.dev/parent-refs]: 'Infra' is not"
    assert reason in "\n".join(err)


def test_the_documentation_shows_the_output_of_the_command(stowplan: Stowplan) -> None:
    """Kinds and names in docs/models.md are compared in order."""
    page = (SAMPLES.parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    shown = page.partition("```console")[2].partition("```")[0].splitlines()
    _, printed, _ = stowplan("expand", "-f", FIXED)

    kinds = [line for line in shown if line.startswith("kind: ")]
    assert kinds == [line for line in printed.splitlines() if line.startswith("kind: ")]
    assert all(f"\n{line}\n" in printed for line in shown if line.startswith("  name: "))


def test_empty_annotations_are_accepted(stowplan: Stowplan) -> None:
    """They are null in a file from which the last annotation was deleted."""
    text = ROUTE.replace("{name: chat}", "{name: chat, annotations: , labels: }")
    code, out, _ = stowplan("expand", "-f", "r.yaml", "--gateways", "infra/inference", r_yaml=text)

    assert code == 0
    assert "kind: HTTPRoute" in out
