"""Scenario files: empty members, the order of errors, patience, and what a sample states about itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.plan_verb import Simulate

from controller.commands.check.documents import Source
from controller.commands.simulate.scenario_file import ScenarioInputs, read_scenario
from controller.simulation import run
from controller.simulation.router import Routing

SMALL = """
name: small
durationSeconds: 300
models: [{id: m, workload: {curve: {shape: constant, high: 5, low: ~}, trace: ~}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 1, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 9600}}
nodes: [{accelerator: H100}]
"""


def read_small(text: str, change: tuple[str, str] = ("name", "name")) -> ScenarioInputs:
    """Return the small scenario with more lines, and with a change."""
    return read_scenario(Source(name="s.yaml", data=(SMALL.replace(*change) + text).encode()))


EMPTY = {
    "an empty section": "behavior:\n  # scaleUp: {}\n",
    "a null direction and null policies": "behavior: {scaleUp: ~, scaleDown: {policies: ~}}\n",
    "numbers": "seed:\ngraceSeconds:\n",
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_member_is_treated_as_absent(text: str) -> None:
    """It gets its default."""
    given = read_small(text)

    assert given.problems == ()
    assert given.scenario is not None


def test_kinds_of_engines_are_read() -> None:
    """Chunks of prompts, hits of the prefix cache, speculative decoding and data parallelism."""
    fields = "maxNumBatchedTokens: 512, prefixHitShare: 0.5, acceptedTokensPerStep: 2.4, ranks: 8"

    given = read_small("", ("kvTokens: 9600", f"kvTokens: 96, {fields}"))

    assert given.scenario is not None
    profile = given.scenario.variants[0].profile
    assert (profile.max_num_batched_tokens, profile.prefix_hit_share) == (512, 0.5)
    assert (profile.accepted_tokens_per_step, profile.ranks) == (2.4, 8)


ROUTERS: dict[str, tuple[str, Routing | None, tuple[str, ...]]] = {
    "the default": ("", Routing(), ()),
    "a policy": ("router: {policy: random}", Routing(policy="random"), ()),
    "an age": ("router: {staleSeconds: 5}", Routing(stale_seconds=5.0), ()),
    "an age that is not used": (
        "router: {policy: random, staleSeconds: 5}",
        None,
        (
            "s.yaml:8: router.staleSeconds: staleSeconds requires the policy shortest-queue: the others use"
            " no queues",
        ),
    ),
}


@pytest.mark.parametrize(("line", "routing", "problems"), ROUTERS.values(), ids=ROUTERS.keys())
def test_the_router_is_read(line: str, routing: Routing | None, problems: tuple[str, ...]) -> None:
    """Its policy, and how old its information is."""
    given = read_small(line)

    assert given.problems == problems
    assert (given.scenario and given.scenario.routing) == routing


def test_a_start_deviates_by_at_most_its_mean() -> None:
    """A start cannot take less than no time."""
    times = "startUpSeconds: 60, startUpJitterSeconds: 61,"

    (problem,) = read_small("", ("pricePerHour: 1,", f"pricePerHour: 1, {times}")).problems

    assert problem.endswith(".startUpJitterSeconds: must not be greater than startUpSeconds")


def test_errors_are_sorted_by_line() -> None:
    """They come from different checks."""
    given = read_small("node: 1\nseed: -1\nmodle: 2\n")

    lines = [int(problem.split(":")[1]) for problem in given.problems]
    assert len(lines) == 3
    assert lines == sorted(lines)


HASTY = """
start: cold
models: [{id: m, ttftMilliseconds: 100, workload: {curve: {high: 5}}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 1, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 9600}}
nodes: [{accelerator: H100}]
"""

PATIENCES = {
    "the default": ("", (), 60.0),
    "that of the file": ("patienceSeconds: 7", (), 7.0),
    "never, by the file": ("patienceSeconds: 0", (), None),
    "that of the command line": ("patienceSeconds: 7", ("--patience", "9.5"), 9.5),
    "never, by the command line": ("patienceSeconds: 7", ("--patience", "0"), None),
}


@pytest.mark.parametrize(("line", "options", "seconds"), PATIENCES.values(), ids=PATIENCES.keys())
def test_clients_have_the_patience_of_the_file_or_the_command_line(
    simulate: Simulate, line: str, options: tuple[str, ...], seconds: float | None
) -> None:
    """There is no engine, so all requests are missed, and abandoned unless clients never give up."""
    Path("s.yaml").write_text(HASTY + line)

    _, out, _ = simulate("s.yaml", *options, "--duration", "15", "--policy", "constant:0", "-o", "json")

    found = json.loads(out)
    assert found["scenario"]["patience_seconds"] == seconds
    assert found["outcomes"][0]["abandoned"] == (0 if seconds is None else 1)
    assert found["outcomes"][0]["missed"] == 1


SURGE = Path(__file__).resolve().parents[3] / "manifests" / "samples" / "simulate" / "surge.yaml"
STEP_SECONDS = 600.0


def test_the_surge_sample_misses_the_share_stated_in_its_comment() -> None:
    """TTFT exceeds its target only within 150 s after the step, while replicas start and queues drain."""
    scenario = read_scenario(Source(name=str(SURGE), data=SURGE.read_bytes())).scenario
    assert scenario is not None
    outcome = run.simulate(scenario, "stowplan")

    said = re.search(r"(\d+\.\d) % of the requests miss", SURGE.read_text())
    assert said is not None
    assert f"{100 * outcome.missed:.1f}" == said[1]
    (targets,) = [model.targets for model in scenario.models]
    assert targets.ttft_seconds is not None
    late = [
        point.seconds
        for point in outcome.points
        for seen in point.models
        if point.seconds >= 0 and (seen.ttft_p90_seconds or 0.0) > targets.ttft_seconds
    ]
    assert min(late) > STEP_SECONDS
    assert max(late) <= STEP_SECONDS + 150
