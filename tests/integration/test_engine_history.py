"""`stowplan profile` and `simulate` with a real Prometheus that scraped engines in the last half hour."""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING, Final

import pytest
import yaml
from support.command_line import stowplan
from support.engine_history import LLAMA, PROFILE, Past, pages, prometheus_with
from support.manifests import Manifest, deployment, listed, variant

from controller.commands.simulate import history
from controller.commands.simulate.history import PastVariant, read_past
from controller.engines.requests import NO_CREDENTIALS
from controller.simulation.workload import TraceReplay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.controlplane

PAGES: Final = 121
"""Half an hour."""


def without_histograms(page: str) -> str:
    """Return a page of an engine that counts, and has no histogram of lengths."""
    kept = (line for line in page.splitlines() if "request_prompt" not in line and "request_gen" not in line)
    return "\n".join(kept) + "\n"


@pytest.fixture(scope="module")
def past() -> Past:
    """Return the past of some Deployments: one of the pods restarted, and others came and went."""
    made = Past()
    made.add("llama-7d9f8c6b5-abcde", pages(PAGES, restart_at=60))
    made.add("llama-7d9f8c6b5-fghij", pages(60, seed=2), until_seconds=300)
    made.add("plain-7d9f8c6b5-abcde", [without_histograms(page) for page in pages(60, seed=3)])
    made.add("idle-7d9f8c6b5-abcde", pages(60, rate=lambda _: 1e-9))
    made.add("gone-7d9f8c6b5-abcde", pages(20, seed=4), until_seconds=1500)
    made.add("gone-7d9f8c6b5-fghij", pages(20, seed=5))
    return made


@pytest.fixture(scope="module")
def url(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a Prometheus with this past."""
    with prometheus_with(past, tmp_path_factory.mktemp("prometheus")) as running:
        yield running


def pods_of(name: str, *, model: str = LLAMA) -> PastVariant:
    """Return the pods of a Deployment."""
    return PastVariant(name=name, model_id=model, namespace="chat", pods=f"{name}-[a-z0-9]+-[a-z0-9]+")


def read(url: str, past: Past, *variants: PastVariant, last_seconds: float = 1800.0) -> history.Past:
    """Return what is read."""
    return read_past(
        url,
        variants,
        credentials=NO_CREDENTIALS,
        end_seconds=past.ended_seconds,
        last_seconds=last_seconds,
    )


def test_step_times_are_those_of_the_engines(url: str) -> None:
    """Although one restarted, and the other was there for half of the time."""
    ended = stowplan("profile", "--prometheus", url, "-n", "chat", "--pods", "llama-.*", "--last", "1h")

    assert ended.code == 0
    parms = yaml.safe_load(ended.out)["spec"]["variantProfile"]["perfParms"]
    assert float(parms["decodeParms"]["alpha"]) == pytest.approx(PROFILE.alpha_ms, rel=0.05)
    assert float(parms["decodeParms"]["beta"]) == pytest.approx(PROFILE.beta_ms, rel=0.1)
    assert float(parms["prefillParms"]["delta"]) == pytest.approx(PROFILE.delta_ms, rel=0.1)
    assert "2 replicas" in ended.out


WRONG: dict[str, tuple[list[str], int, str]] = {
    "another namespace": (["-n", "other"], 1, "has no series of vLLM or SGLang of pods of namespace other"),
    "other pods": (["-n", "chat", "--pods", "nobody"], 1, "that match nobody"),
    "no expression": (["-n", "chat", "--pods", "("], 2, "error parsing regexp"),
    "an expression with quotes": (["-n", "chat", "--pods", '"} or vector[1]'], 1, "has no series"),
}


@pytest.mark.parametrize(("arguments", "code", "text"), WRONG.values(), ids=WRONG)
def test_what_prometheus_does_not_have_is_said(url: str, arguments: list[str], code: int, text: str) -> None:
    """In one sentence."""
    ended = stowplan("profile", "--prometheus", url, *arguments)
    assert ended.code == code
    assert text in ended.out + ended.err


def test_another_server_is_no_prometheus(url: str) -> None:
    """A path that does not exist."""
    ended = stowplan("profile", "--prometheus", f"{url}/nowhere", "-n", "chat")
    assert ended.code == 2
    assert ended.err == "error: Prometheus: HTTP 404: 404 page not found\n"


def test_the_load_and_the_engines_are_those_of_the_past(url: str, past: Past) -> None:
    """Although a counter was reset, and one pod was there for half of the time."""
    found = read(url, past, pods_of("llama"))

    assert found.problems == ()
    workload, known = found.workloads[LLAMA], found.measured["llama"]
    assert isinstance(workload, TraceReplay)
    requests = workload.trace
    assert len(requests) == pytest.approx(10 * 1800 + 10 * 900, rel=0.05)
    assert fmean(item.prompt_tokens for item in requests) == pytest.approx(1050, rel=0.05)
    assert fmean(item.output_tokens for item in requests) == pytest.approx(200, rel=0.05)
    assert [item.offset_ms for item in requests] == sorted(item.offset_ms for item in requests)
    assert found.seconds == pytest.approx(1800, abs=120)
    assert known.parameters is not None
    assert known.parameters.alpha_ms == pytest.approx(PROFILE.alpha_ms, rel=0.05)
    assert known.kv_tokens == PROFILE.kv_tokens
    minutes = [sum(60_000 * n <= item.offset_ms < 60_000 * (n + 1) for item in requests) for n in range(25)]
    assert max(minutes) > 1.5 * min(minutes)


def test_a_longer_time_than_there_are_samples_is_a_warning(url: str, past: Past) -> None:
    """Only the time with samples is simulated."""
    found = read(url, past, pods_of("llama"), last_seconds=86_400.0)

    assert found.problems == ()
    assert found.seconds == pytest.approx(1800, abs=240)
    assert "Prometheus has samples of 3" in found.warnings[0]
    assert "of the last 24 h: only that time is simulated" in found.warnings[0]


def test_times_without_samples_are_a_warning(url: str, past: Past) -> None:
    """No requests are simulated there."""
    found = read(url, past, pods_of("gone"))

    (text,) = (text for text in found.warnings if "in between" in text)
    assert text.startswith("Prometheus has no samples for 1")
    workload = found.workloads[LLAMA]
    assert isinstance(workload, TraceReplay)
    assert len(workload.trace) == pytest.approx(2 * 10 * 300, rel=0.2)


def test_without_histograms_all_requests_have_the_mean_length(url: str, past: Past) -> None:
    """With a warning for prompts and for answers."""
    found = read(url, past, pods_of("plain"))

    workload = found.workloads[LLAMA]
    assert isinstance(workload, TraceReplay)
    assert len({(item.prompt_tokens, item.output_tokens) for item in workload.trace}) == 1
    assert workload.trace[0].prompt_tokens == pytest.approx(1050, rel=0.05)
    assert [text.partition(": all have")[0] for text in found.warnings if "histogram" in text] == [
        f"model {LLAMA}: its engines have no histogram of the lengths of prompts",
        f"model {LLAMA}: its engines have no histogram of the lengths of answers",
    ]


def test_what_is_not_there_is_a_problem_that_names_it(url: str, past: Past) -> None:
    """Missing data is never zero."""
    nobody = read(url, past, pods_of("nobody"))
    idle = read(url, past, pods_of("llama", model="m"), pods_of("idle", model="n"))

    assert nobody.problems[0].startswith(
        "Prometheus has no series of vLLM or SGLang of the pods of chat/nobody in the last 30 min"
    )
    assert idle.problems == ("model n: its engines had no request in that time: use a longer --last",)


def test_too_many_requests_are_refused(url: str, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they are drawn."""
    monkeypatch.setattr(history, "_MOST_REQUESTS", 1000)

    (problem,) = read(url, past, pods_of("llama")).problems

    assert problem.endswith("use a shorter --last")
    assert "of at most" in problem


def exported(tmp_path: Path) -> str:
    """Write the export of the Deployment, and return the name of the file."""
    own = deployment("llama", product="NVIDIA-H100-80GB-HBM3", accelerators=1)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": "vllm:num_requests_running"},
            "target": {"type": "AverageValue", "averageValue": "20"},
        },
    }
    scaler: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llama", "namespace": "chat"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"},
            "maxReplicas": 8,
            "metrics": [metric],
        },
    }
    claimed = variant("llama", modelID=LLAMA, accelerator="H100")
    own["spec"]["template"]["spec"]["containers"][0]["args"] = []
    for item in (own, claimed):
        item["metadata"]["namespace"] = "chat"
    (tmp_path / "live.yaml").write_text(listed(node, own, claimed, scaler), encoding="utf-8")
    return str(tmp_path / "live.yaml")


def test_an_export_and_a_prometheus_are_enough(url: str, tmp_path: Path) -> None:
    """No number comes from the user."""
    options = "--last 45m --policy constant:2 --policy hpa --duration 300 --start cold -o json"
    ended = stowplan("simulate", "-f", exported(tmp_path), "--prometheus", url, *options.split())
    found = json.loads(ended.out)

    assert ended.code == 0
    (engine,) = found["scenario"]["engines"]
    assert (engine["step_times"], engine["kv_tokens"]) == ("Prometheus", "Prometheus")
    assert [item["policy"] for item in found["outcomes"]] == ["constant:2", "hpa"]
    assert all(item["requests"] > 1000 for item in found["outcomes"])
