"""`stowplan simulate --prometheus` without a usable server, and the requests that are drawn.

`tests/integration/test_engine_history.py` uses a real Prometheus.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from statistics import fmean

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifests import deployment, l4_node, listed, variant
from support.plan_verb import Simulate
from support.served import served

from controller.commands.simulate import history
from controller.commands.simulate.history import LengthBuckets, PastVariant, RequestSampler, read_past
from controller.engines.requests import NO_CREDENTIALS
from controller.sizing.lengths import Lengths

LLAMA = PastVariant(name="llama", model_id="m", namespace="chat", pods="llama-.*")


def problems(url: str) -> tuple[str, ...]:
    """Return why nothing was read."""
    return read_past(
        url, [LLAMA], credentials=NO_CREDENTIALS, end_seconds=1.8e9, last_seconds=1800.0
    ).problems


def test_no_server_is_a_problem() -> None:
    """At once."""
    assert problems("http://127.0.0.1:1") == ("Prometheus: connection refused",)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"<html>", 200, "not a matrix of samples"),
        (b'{"data": {"result": [{"metric": {}, "value": [1, "2"]}]}}', 200, "not a matrix of samples"),
        (b"no", 503, "HTTP 503: no"),
        (b"", 302, "HTTP 302"),
    ],
)
async def test_another_server_is_a_problem(body: bytes, status: int, reason: str) -> None:
    """Whatever it answers."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    async with served(answer, path="/api/v1/{any}") as port:
        found = await asyncio.to_thread(problems, f"http://127.0.0.1:{port}")

    assert len(found) == 1
    assert found[0].startswith("Prometheus: ")
    assert reason in found[0]


async def test_a_server_that_does_not_answer_takes_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five minutes, and less here."""
    monkeypatch.setattr(history, "_TOTAL_SECONDS", 0.2)
    is_over = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        await is_over.wait()
        return web.Response()

    async with served(answer, path="/api/v1/{any}") as port:
        found = await asyncio.to_thread(problems, f"http://127.0.0.1:{port}")
        is_over.set()

    assert found[0].endswith("use a shorter --last")


@pytest.mark.parametrize("minutes", [1, 59, 60, 90, 150, 24 * 60, 24 * 60 + 7, 31 * 24 * 60])
async def test_lengths_are_read_of_the_whole_time(minutes: int) -> None:
    """Not only of whole hours from its beginning: the newest requests matter most."""
    asked: list[tuple[float, float, float, float]] = []

    async def answer(request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        if window := re.search(r"increase\(.*\[([0-9]+)s\]", query):
            start, end, step = (float(str(form[name])) for name in ("start", "end", "step"))
            asked.append((start, end, step, float(window[1])))
        return web.json_response({"data": {"resultType": "matrix", "result": []}})

    async with served(answer, path="/api/v1/{any}") as port:
        found = await asyncio.to_thread(
            read_past,
            f"http://127.0.0.1:{port}",
            [LLAMA],
            credentials=NO_CREDENTIALS,
            end_seconds=1.8e9,
            last_seconds=60.0 * minutes,
        )

    assert "no series" in found.problems[0]
    assert len(asked) == 4
    for start, end, step, window in asked:
        last = start + (end - start) // step * step
        assert step == window <= 3600
        assert last == 1.8e9
        assert 0 <= (last - start + window) - 60.0 * minutes < 1 + (end - start) / step


COUNTS = st.dictionaries(st.sampled_from([1.0, 10.0, 100.0, 1000.0, float("inf")]), st.floats(0, 1e6))


@given(COUNTS, st.floats(0, 1e12), st.lists(st.floats(0, 20), max_size=20))
@settings(max_examples=50)
def test_any_counts_give_requests_of_positive_lengths(
    buckets: dict[float, float], tokens: float, rates: list[float]
) -> None:
    """As many as were counted, in order, and always the same; or a problem."""
    counts = [LengthBuckets(buckets=buckets, tokens=tokens)]
    sampler = RequestSampler.of("m", prompts=counts, answers=counts, means=None)
    if sampler.problems:
        assert sum(buckets.values()) < 1
        return

    drawn = list(sampler.requests(rates, 60.0))

    assert len(drawn) == round(sum(rates) * 60.0)
    assert all(item.prompt_tokens >= 1 and item.output_tokens >= 1 for item in drawn)
    assert [item.offset_ms for item in drawn] == sorted(item.offset_ms for item in drawn)
    assert drawn == list(sampler.requests(rates, 60.0))


def test_lengths_have_the_measured_mean() -> None:
    """Buckets are wide: without correction, the mean would be 1.5 times as large."""
    counts = [LengthBuckets(buckets={100.0: 0.0, 1000.0: 500.0}, tokens=500 * 367.0)]
    sampler = RequestSampler.of(
        "m", prompts=counts, answers=counts, means=Lengths(prompt=1, computed=1, output=1)
    )

    drawn = list(sampler.requests([50.0] * 10, 60.0))

    assert fmean(item.prompt_tokens for item in drawn) == pytest.approx(367.0, rel=0.02)


WRONG = {
    "without an export": (["--prometheus", "http://127.0.0.1:1"], "--prometheus requires -f FILE"),
    "a time without a Prometheus": (["-f", "live.yaml", "--last", "1h"], "--last requires --prometheus URL"),
    "no server": (
        ["-f", "live.yaml", "--prometheus", "http://127.0.0.1:1"],
        "Prometheus: connection refused",
    ),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_explained(simulate: Simulate, arguments: list[str], text: str) -> None:
    """With exit code 2."""
    claimed = variant("chat", modelID="meta/llama-3.2-3b")
    workload = deployment("chat", product="NVIDIA-L4", accelerators=1)
    Path("live.yaml").write_text(listed(l4_node("n"), workload, claimed), encoding="utf-8")

    code, _, errors = simulate(*arguments)

    assert code == 2
    assert any(text in line for line in errors)
