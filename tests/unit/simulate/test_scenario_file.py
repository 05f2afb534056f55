"""Scenario files: empty members, and the order of errors."""

from __future__ import annotations

import pytest

from controller.commands.check.documents import Source
from controller.commands.simulate.scenario_file import read_scenario
from controller.simulation.routing import Routing

SMALL = """
name: small
durationSeconds: 300
models: [{id: m, workload: {curve: {shape: constant, high: 5, low: LOW}, trace: TRACE}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 1, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 9600}}
nodes: [{accelerator: H100}]
"""

EMPTY = {
    "an empty section": "behavior:\n  # scaleUp: {}\n",
    "a null direction and null policies": "behavior: {scaleUp: ~, scaleDown: {policies: ~}}\n",
    "numbers": "seed:\ngraceSeconds:\n",
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_member_is_treated_as_absent(text: str) -> None:
    """It gets its default."""
    data = (SMALL.replace("LOW", "~").replace("TRACE", "~") + text).encode()

    given = read_scenario(Source(name="s.yaml", data=data))

    assert given.problems == ()
    assert given.scenario is not None


def test_kinds_of_engines_are_read() -> None:
    """Chunks of prompts, hits of the prefix cache, speculative decoding and data parallelism."""
    fields = "maxNumBatchedTokens: 512, prefixHitShare: 0.5, acceptedTokensPerStep: 2.4, ranks: 8"
    text = (
        SMALL.replace("LOW", "~").replace("TRACE", "~").replace("kvTokens: 9600", f"kvTokens: 96, {fields}")
    )

    given = read_scenario(Source(name="s.yaml", data=text.encode()))

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
    text = SMALL.replace("LOW", "~").replace("TRACE", "~") + line

    given = read_scenario(Source(name="s.yaml", data=text.encode()))

    assert given.problems == problems
    assert (given.scenario and given.scenario.routing) == routing


def test_a_start_deviates_by_at_most_its_mean() -> None:
    """A start cannot take less than no time."""
    text = SMALL.replace("LOW", "~").replace("TRACE", "~")
    text = text.replace("pricePerHour: 1,", "pricePerHour: 1, startUpSeconds: 60, startUpJitterSeconds: 61,")

    given = read_scenario(Source(name="s.yaml", data=text.encode()))

    (problem,) = given.problems
    assert problem.endswith(".startUpJitterSeconds: must not be greater than startUpSeconds")


def test_errors_are_sorted_by_line() -> None:
    """They come from different checks."""
    data = (
        SMALL.replace("LOW", "0").replace(", trace: TRACE", "") + "node: 1\nseed: -1\nmodle: 2\n"
    ).encode()

    given = read_scenario(Source(name="s.yaml", data=data))

    lines = [int(problem.split(":")[1]) for problem in given.problems]
    assert len(lines) == 3
    assert lines == sorted(lines)
