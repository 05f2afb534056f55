"""`stowplan profile`: pages of engines in files and behind URLs, the status of a variant, and wrong usage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from aiohttp import web
from support.annotated import Objects, hpa
from support.engine_expositions import SGLANG
from support.engine_history import PROFILE, pages
from support.served import served
from support.verbs import Stowplan

from apiserver.kinds.decision_record import CONFIG_MAP, record_text
from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from controller.commands.explain.evidence import NoSuchObjectError
from controller.commands.profile.profile import ProfileFindings, document, learned_by_controller, yaml_text
from controller.observe.claim import OwnerKind
from controller.sizing.lengths import Lengths
from controller.sizing.records import StepParameters

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(stowplan: Stowplan, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that saves pages, runs the command on them, and returns code, output and errors."""

    def call(*arguments: str, saved: Sequence[str] = ()) -> tuple[int, str, str]:
        pages = {f"{number}_txt": page for number, page in enumerate(saved)}
        files = [word for number in range(len(pages)) for word in ("-f", f"{number}.txt")]
        try:
            code, out, err = stowplan("profile", *arguments, *files, **pages)
        except SystemExit as error:  # of argparse
            captured = capsys.readouterr()
            return int(str(error.code)), captured.out, captured.err
        return code, out, "\n".join(err)

    return call


def test_pages_of_an_engine_give_its_profile_as_valid_yaml(run: Run) -> None:
    """The step times are within a tenth of the true ones, and admission accepts the spec."""
    code, out, _ = run("--max-batch-size", "128", saved=pages(41))

    assert code == 0
    spec = yaml.safe_load(out)["spec"]
    parms = spec["variantProfile"]["perfParms"]
    assert float(parms["decodeParms"]["alpha"]) == pytest.approx(PROFILE.alpha_ms, rel=0.1)
    assert float(parms["decodeParms"]["beta"]) == pytest.approx(PROFILE.beta_ms, rel=0.1)
    assert float(parms["prefillParms"]["delta"]) == pytest.approx(PROFILE.delta_ms, rel=0.1)
    assert spec["variantProfile"]["maxBatchSize"] == 128
    assert "# KV cache of an engine: 384000 tokens" in out
    assert "# mean request: a prompt of 10" in out
    assert "not known" not in out
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    value = {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {"modelID": "m", "scaleTargetRef": target, **spec},
    }
    known = find_version("llmd.ai/v1alpha2", "VariantAutoscaling")
    assert known is not None
    assert complete_and_judge(*known, value).errors == []


def idle(seconds: float) -> float:
    """Return hardly any requests per second."""
    del seconds
    return 1e-6


def steady(seconds: float) -> float:
    """Return the same rate always."""
    del seconds
    return 8.0


UNKNOWN = {
    "one page": (pages(1), "no engine was read twice within ten minutes"),
    "no load": (pages(8, rate=idle), "no engine had a request with several tokens"),
    "too few pages": (pages(4), "too little load, or too little time"),
    "a page that repeats": ([pages(2)[1]] * 3, "no engine had a request"),
    "no lengths": (pages(1), "lengths cannot be told"),
    "SGLang, which counts no steps": (
        [SGLANG, SGLANG.replace(" 1600.0", " 9600.0")],
        "no engine had a request with several tokens",
    ),
}


@pytest.mark.parametrize(("saved", "text"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_cannot_be_told_is_said(run: Run, saved: list[str], text: str) -> None:
    """Without step times, there is no spec, and the exit code is 1."""
    code, out, _ = run(saved=saved)
    is_known = "spec:" in out

    assert text in out
    assert code == (0 if is_known else 1)


def test_a_batch_that_hardly_varied_is_a_doubt() -> None:
    """Then only one point of the plane is known."""
    profile = ProfileFindings(
        origin="here",
        parameters=StepParameters(alpha_ms=123_456.0, beta_ms=0.000_012_34, delta_ms=0.0),
        doubts=("the batch hardly varied\x1b[2J",),
    )

    text = yaml_text(profile)

    assert "\x1b" not in text
    parms = yaml.safe_load(text)["spec"]["variantProfile"]["perfParms"]
    assert parms["decodeParms"] == {"alpha": "123456", "beta": "0.00001234"}
    assert parms["prefillParms"] == {"gamma": "0", "delta": "0"}
    assert document(profile)["unknown"] == ["the batch hardly varied\x1b[2J"]


WRONG = {
    "no source": ([], "specify one of va/NAME, --prometheus, --url, -f"),
    "two sources": (["va/x", "-f", "a.txt"], "not va/NAME and -f"),
    "a name with slashes": (["a/b/c"], "one object is required"),
    "Prometheus without pods": (["--prometheus", "http://127.0.0.1:1"], "requires -n NS or --pods REGEX"),
    "pods without Prometheus": (["va/x", "--pods", "a"], "--pods requires --prometheus"),
    "no URL": (["--prometheus", "localhost:9090", "-n", "a"], "must be a URL"),
    "a URL with a senseless port": (["--url", "http://a:99999/"], "must be a URL"),
    "a senseless time": (["--prometheus", "http://a", "-n", "a", "--last", "1y"], "must be a time from 60s"),
    "a time that is too long": (["--prometheus", "http://a", "-n", "a", "--last", "99d"], "to 31d"),
    "a senseless interval": (["-f", "a", "--interval", "nan"], "from 1 to 600"),
    "a senseless batch": (["-f", "a", "--max-batch-size", "0"], "a whole number from 1"),
    "a missing file": (["-f", "missing.txt"], "missing.txt: "),
    "no such server": (["--url", "http://127.0.0.1:1/metrics"], "connection refused"),
    "no such Prometheus": (
        ["--prometheus", "http://127.0.0.1:1", "-n", "a"],
        "Prometheus: connection refused",
    ),
    "no kubeconfig": (["va/x", "--kubeconfig", "missing"], "missing"),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_explained(run: Run, arguments: list[str], text: str) -> None:
    """With exit code 2, and without output."""
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert text in err


@pytest.mark.parametrize("page", ["", "<html>", "vllm:num_requests_running nonsense\n", "\x00\x01"])
def test_a_page_of_something_else_is_an_error(run: Run, page: str) -> None:
    """It names the file."""
    code, out, err = run(saved=[page])

    assert (code, out) == (2, "")
    assert "error: 0.txt: " in err


async def test_a_page_behind_a_url_is_read_until_the_time_is_over() -> None:
    """At least once."""
    own = iter(pages(3))

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=next(own))

    async with served(answer) as port:
        arguments = ("profile", "--url", f"http://127.0.0.1:{port}/metrics", "--for", "2s", "--interval", "1")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "apiserver.cli", *arguments, "-o", "json", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()

    found = json.loads(out)
    assert found["kvCacheTokens"] == 384_000
    assert "1 replica over " in found["origin"]


LEARNED = {
    "decodeParms": {"alpha": "8.1", "beta": "0.05"},
    "prefillParms": {"delta": "0.03"},
    "samples": 412,
    "startSeconds": 140,
    "kvCacheTokens": 384_000,
}


@pytest.mark.parametrize(("performance", "alpha"), [(LEARNED, 8.1), ({}, None), (None, None)])
async def test_what_the_controller_learned_is_in_the_status(
    performance: Json | None, alpha: float | None
) -> None:
    """A variant without is no error: it says what to do."""
    value = {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "chat", "namespace": "models"},
        "spec": {"modelID": "m"},
        "status": {"decision": {"performance": performance}},
    }

    variant = OwnerKind.VARIANT
    profile = await learned_by_controller(Objects(value).cluster, variant, namespace="models", name="chat")

    assert (profile.parameters.alpha_ms if profile.parameters else None) == alpha
    if alpha:
        assert (profile.kv_tokens, profile.start_seconds) == (384_000, 140.0)
        assert "from 412 intervals" in profile.origin
    else:
        assert "has not seen the engines under load yet" in profile.doubts[0]


def _variant(**profile: object) -> Json:
    return {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "chat", "namespace": "models"},
        "spec": {"modelID": "m", "variantProfile": profile},
        "status": {"decision": {"performance": LEARNED}},
    }


BATCHES = {
    "the command line counts": (17, {"maxBatchSize": 48}, 17),
    "then the declared one": (None, {"maxBatchSize": 48}, 48),
    "then the default": (None, {}, 256),
}


@pytest.mark.parametrize(("stated", "declared", "batch"), BATCHES.values(), ids=BATCHES)
async def test_the_batch_size_of_a_variant(stated: int | None, declared: Json, batch: int) -> None:
    """What was stated is never ignored."""
    cluster, kind = Objects(_variant(**declared)).cluster, OwnerKind.VARIANT
    place = {"namespace": "models", "name": "chat"}

    profile = await learned_by_controller(cluster, kind, **place, max_batch_size=stated)

    assert yaml.safe_load(yaml_text(profile))["spec"]["variantProfile"]["maxBatchSize"] == batch


async def test_an_annotated_autoscaler_has_a_profile_too() -> None:
    """From the record of its decisions."""
    value = hpa("chat", namespace="models")
    decision = {"reason": "Steady", "message": "as learned", "performance": LEARNED}
    record = record_text(value, {"model_id": "m"}, {"decision": decision})
    records = {"kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}, "data": {"chat": record}}
    kind = OwnerKind.HORIZONTAL_POD_AUTOSCALER

    profile = await learned_by_controller(
        Objects(value, records).cluster, kind, namespace="models", name="chat"
    )

    assert profile.parameters is not None
    assert profile.parameters.alpha_ms == 8.1
    assert profile.origin.startswith("HorizontalPodAutoscaler models/chat: learned")


async def test_an_unknown_name_is_answered_with_the_others() -> None:
    """As `stowplan explain` answers it."""
    cluster = Objects(_variant()).cluster

    with pytest.raises(
        NoSuchObjectError,
        match="no VariantAutoscaling 'nosuch' in namespace 'models'; objects in this namespace: chat",
    ):
        await learned_by_controller(cluster, OwnerKind.VARIANT, namespace="models", name="nosuch")


def test_the_example_of_the_page_is_what_is_printed() -> None:
    """Also the line that separates the comments from the object."""
    page = Path(__file__).resolve().parents[3] / "docs" / "profiles.md"
    example = page.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]

    profile = ProfileFindings(
        origin="Prometheus http://localhost:9090: 2 replicas over 3600 s, 439 busy intervals",
        parameters=StepParameters(alpha_ms=8.003, beta_ms=0.04905, gamma_ms=0, delta_ms=0.03017),
        kv_tokens=384_000,
        lengths=Lengths(prompt=1050, computed=1050, output=201),
    )

    assert yaml_text(profile) == example
