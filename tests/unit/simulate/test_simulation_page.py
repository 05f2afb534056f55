"""The HTML page of a simulation: content, links, no external references, and escaped names."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.outline import outline
from support.plan_verb import Simulate

from controller.commands.simulate.page import page
from controller.commands.simulate.results import Results
from controller.simulation.outcome import (
    BindingCourse,
    BindingPoint,
    ModelOutcome,
    ModelPoint,
    Point,
    PolicyDecision,
    PolicyOutcome,
    Quantiles,
    VariantOutcome,
    VariantPoint,
)
from controller.simulation.profile import EngineProfile
from controller.simulation.scenario import Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import TraceReplay
from controller.sizing.records import Targets

HOSTILE = '<script>alert("x")</script><img src=//evil.example onerror=alert(1)>&amp;\'"'
REFERENCES = re.compile(r"https?:|//|@import|url\(|src=|<link|<script")


def results(name: str = "m", *, policies: int = 2, models: int = 1) -> Results:
    """Return the results of five minutes with one variant per model; the first policy has one decision."""
    names = [f"{name}{number}" for number in range(models)]
    scenario = Scenario(
        name=name,
        models=tuple(_model(item) for item in names),
        variants=tuple(_variant(item) for item in names),
        nodes=(),
        duration_seconds=300.0,
        warm_up_seconds=60.0,
    )
    outcomes = [_outcome(scenario, f"{name}-{number}") for number in range(policies)]
    told = PolicyDecision(
        seconds=-45.0,
        variant=f"v-{names[0]}",
        replicas=3,
        current_replicas=2,
        sentence=f"{name} goes from 2 to 3",
    )
    outcomes[0] = replace(outcomes[0], decisions=(told,))
    return Results(scenario=scenario, outcomes=tuple(outcomes), warnings=(f"{name}: be careful",))


def _model(model_id: str) -> ScenarioModel:
    targets = Targets(ttft_seconds=2.0, itl_seconds=0.08)
    return ScenarioModel(model_id=model_id, workload=TraceReplay(trace=()), targets=targets)


def _variant(model_id: str) -> VariantSetup:
    profile = EngineProfile(
        model_id=model_id, alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03, num_gpu_blocks=24_000
    )
    return VariantSetup(name=f"v-{model_id}", profile=profile, accelerator="H100", price_per_hour=100)


def _outcome(scenario: Scenario, policy: str) -> PolicyOutcome:
    shares: dict[str, Any] = {
        "missed": 0.25, "missed_ttft": 0.2, "missed_itl": 0.1, "never_finished": 0.0, "abandoned": 0.0
    }  # fmt: skip
    return PolicyOutcome(
        scenario=scenario.name,
        policy=policy,
        cost=12.0,
        requests=100,
        **shares,
        models=tuple(
            ModelOutcome(
                model_id=model.model_id,
                requests=100,
                **shares,
                ttft_seconds=Quantiles(p50=0.1, p90=0.5, p99=3.0),
                itl_seconds=Quantiles(),
            )
            for model in scenario.models
        ),
        variants=tuple(
            VariantOutcome(
                name=item.name, model_id=item.model_id, cost=12, replica_hours=1, peak_replicas=3
            )
            for item in scenario.variants
        ),
        points=tuple(_point(scenario, float(seconds)) for seconds in range(-60, 300, 15)),
    )  # fmt: skip


def _point(scenario: Scenario, seconds: float) -> Point:
    return Point(
        seconds=seconds,
        cost_rate=300.0,
        models=tuple(
            ModelPoint(
                model_id=model.model_id,
                arrivals_per_second=20.0,
                ttft_p90_seconds=0.4 if seconds > 0 else None,
                itl_p90_seconds=None,
            )
            for model in scenario.models
        ),
        variants=tuple(
            VariantPoint(name=item.name, published=3.0, wanted=3.0, spec=3, ready=2, starting=1)
            for item in scenario.variants
        ),
    )


@pytest.mark.parametrize("models", [1, 2])
def test_hostile_names_are_escaped(models: int) -> None:
    """They occur in text, titles and attributes."""
    text = page(results(HOSTILE, models=models))
    found = outline(text)

    assert not {name for name, _ in found.elements} & {"script", "img", "link", "iframe", "object", "form"}
    assert not any(key.startswith("on") for _, attributes in found.elements for key in attributes)
    assert f"{HOSTILE} goes from 2 to 3" in unescape(text)


def test_decisions_of_a_policy_file_are_drawn_after_the_cost() -> None:
    """There is a chart for each metric and for the replicas; the policy without such decisions has none."""
    found = results()
    points = tuple(
        BindingPoint(
            seconds=float(seconds), values={HOSTILE: None if seconds < 0 else 9.0}, recommended=3, replicas=2,
            current_replicas=1, targets=(2,), in_panic=False, limits=("Rate",), sentence=HOSTILE,
        )
        for seconds in range(-60, 300, 15)
    )  # fmt: skip
    first = replace(found.outcomes[0], decided=(BindingCourse(targets=(HOSTILE,), points=points),))
    text = page(replace(found, outcomes=(first, found.outcomes[1])))
    titles = [unescape(title) for title in re.findall(r"<(?:h3|figcaption><b)>(.*?)</(?:h3|b)>", text)]

    drawn = ["Cost per hour", f"Decided for {HOSTILE}", "Replicas", HOSTILE, "m0"]
    assert titles[titles.index("Cost per hour") :][: len(drawn)] == drawn
    assert titles.count("Replicas") == 1
    assert '<path d="M166.7 10.0H958.3" class="line load">' in text
    assert not {name for name, _ in outline(text).elements} & {"script", "img"}


def test_the_page_has_no_external_references() -> None:
    """Without addresses, files, fonts and scripts, it opens without a network."""
    text = page(results())

    assert not REFERENCES.search(text)
    assert "prefers-color-scheme: dark" in text
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_every_link_has_a_target_on_the_page() -> None:
    """Policies link to their charts, and marks to the listed decisions."""
    found = outline(page(results(models=2)))
    links = [attributes["href"] for name, attributes in found.elements if name == "a"]
    anchors = [f"#{attributes['id']}" for _, attributes in found.elements if attributes.get("id")]

    assert len(anchors) == len(set(anchors))
    assert set(links) == {"#policy-1", "#policy-2", "#policy-1-0"}
    assert set(links) <= set(anchors)


def test_a_mark_of_a_decision_links_to_its_entry_in_the_list() -> None:
    """Its tooltip is the text of the decision."""
    text = page(results("a<b"))

    assert '<a href="#policy-1-0"><path d="M41.7 ' in text
    assert 'h0" class="mark"><title>-0:00:45  a&lt;b goes from 2 to 3</title>' in text


def test_every_policy_has_the_same_charts() -> None:
    """There are load and latencies per model, replicas per variant, and the cost."""
    text = page(results(models=2))
    titles = re.findall(r"<figcaption><b>(.*?)</b>", text)

    per_model = ["Load", "Time to first token, p90", "Time between tokens, p90"]
    first = [*per_model, "v-m0: replicas", *per_model, "v-m1: replicas", "Cost per hour"]
    assert titles == [*first, *first]


def test_the_page_contains_the_summary_of_the_simulation() -> None:
    """It has the scenario, latency targets, cost, missed shares, warnings, and decisions with times."""
    text = page(results())

    assert "m: 100 requests in 0:05:00 (0.3/s), warm start, seed 1, patience 60 s" in text
    assert "TTFT 2 s and ITL 80 ms" in text
    assert "target 80 ms" in text
    assert "m: be careful" in text
    assert '<td class="number">25.00%</td>' in text
    assert '<li id="policy-1-0"><b>-0:00:45</b> m goes from 2 to 3</li>' in text


MANY = {"three": (3, 3), "four": (4, 1)}


@pytest.mark.parametrize(("policies", "are_open"), MANY.values(), ids=MANY)
def test_only_the_first_policy_is_expanded_if_there_are_more_than_three(policies: int, are_open: int) -> None:
    """The first one is always expanded."""
    found = outline(page(results(policies=policies)))
    parts = [attributes for _, attributes in found.elements if attributes.get("class") == "policy"]

    assert len(parts) == policies
    assert sum("open" in attributes for attributes in parts) == are_open
    assert "open" in parts[0]


SCENARIO = """
start: cold
durationSeconds: 300
models: [{id: m, ttftMilliseconds: 2000, workload: {curve: {high: 5}}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 9, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 38400}}
nodes: [{accelerator: H100}]
policies: ["lower-bound:90"]
"""


def test_the_lower_bound_has_a_cost_and_nothing_that_is_simulated(simulate: Simulate) -> None:
    """Its row has the share that is dropped; its section of the page has the note and no charts."""
    Path("scenario.yaml").write_text(SCENARIO)

    code, out, _ = simulate("scenario.yaml", "--html", "page.html")

    row = next(line.split() for line in out.splitlines() if line.startswith("lower-bound:90 "))
    text = Path("page.html").read_text()
    assert (code, float(row[1]) > 0) == (0, True)
    assert row[2:] == ["10.00%", *["-"] * 8, "v", "1"]
    assert "lower-bound:90: serving 90 %" in out
    assert "serving 90 %" in text
    assert "<svg" not in text
