"""The pages of the dashboard: what they show, their history, and answers to questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.live_objects import NOW, SERVICE_LEVEL, decided, fleet, live, planned, pod_of, usual_objects
from support.manifests import autoscaler, deployment, l4_node, variant

from apiserver.cluster.resource import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
)
from controller.commands.dashboard.history import KEPT_SECONDS, decisions, record
from controller.commands.dashboard.page import MOST_DRAWN, View, fleet_page, question_page, what_if_page
from controller.commands.dashboard.what_if import (
    Answer,
    Question,
    answer_to,
    change_inputs,
    plan_of,
    read_question,
    size_inputs,
)
from controller.planning.inventory import NodeAddition
from controller.sizing.records import SizingSettings

EVENT: dict[str, Any] = {
    "regarding": {"kind": "VariantAutoscaling", "namespace": "ns", "name": "chat"},
    "reason": "ScaleUp", "note": "chat goes from 1 to 2 replicas", "type": "Normal",
    "eventTime": "2026-01-01T11:59:58.000000Z",
}  # fmt: skip


def busy_objects() -> dict[Any, Any]:
    """Return a variant that needs four accelerators and can get two: one node of two, all used."""
    demand = {"requestsPerSecond": "30", "upperRequestsPerSecond": "40", "startSeconds": 60}
    return {
        NODES: [l4_node("n1", accelerators=2)],
        PODS: [pod_of("chat", number, node="n1") for number in range(2)],
        DEPLOYMENTS: [deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=2)],
        HORIZONTAL_POD_AUTOSCALERS: [autoscaler("chat")],
        VARIANT_AUTOSCALINGS: [
            decided(
                variant("chat"),
                demand=demand,
                capacityPerReplica="10",
                capacitySource="Learned",
                serviceLevel=SERVICE_LEVEL,
            )
        ],
    }


def view(objects: Mapping[Any, Any], *, minutes: int = 5, **more: Any) -> View:
    """Return what the page shows, after some minutes."""
    state = fleet(objects, **more)
    history: Any = {}
    for minute in range(minutes, -1, -1):
        at = NOW - timedelta(minutes=minute)
        history = record(history, replace(state, time=at))
    return View(
        host="https://api.example",
        fleet=state,
        inputs=planned(live(objects)).inputs,
        history=history,
        decisions=decisions([EVENT], {"VariantAutoscaling": None}),
        interval_seconds=15.0,
    )


def answer(question: Question) -> Answer:
    """Return the answer for the busy cluster."""
    gathering = planned(live(busy_objects()))
    facts = gathering.facts or {}
    now = size_inputs(gathering.inputs, facts, SizingSettings())
    after, problems = change_inputs(gathering.inputs, question)
    assert problems == []
    return answer_to(question, size_inputs(after, facts, SizingSettings()), plan_of(now))


def test_the_page_shows_models_nodes_charts_and_decisions() -> None:
    """Without a script, or anything from another place."""
    text = fleet_page(view(busy_objects()))
    assert "ns/meta/llama-3.1-8b" in text
    assert "Requests of the last hour within TTFT 2 s and ITL 80 ms" in text
    assert "chat goes from 1 to 2 replicas" in text
    assert 'href="#decision-0"' in text
    assert "L4: 1 node, 0 of 2 accelerators free" in text
    assert not [word for word in ("<script", "http://", "//cdn", "@import", "url(") if word in text]


def test_an_empty_cluster_has_a_page() -> None:
    """Also one whose nodes may not be read."""
    assert "No model is planned." in fleet_page(view({NODES: []}))
    assert "Accelerators" not in fleet_page(view({VARIANT_AUTOSCALINGS: []}, forbidden=(NODES,)))


def test_names_and_messages_are_text() -> None:
    """Whoever may write an object must not write the page."""
    evil = "<script>alert(1)</script>\x1b[2J"
    value = decided(variant("chat", modelID=evil), "False", "Bad", message=evil)
    text = fleet_page(view(usual_objects() | {VARIANT_AUTOSCALINGS: [value]}))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text


def test_only_some_models_are_drawn_and_a_link_draws_another_one() -> None:
    """A page of 200 models stays small."""
    values = [decided(variant(f"v{number:03}", modelID=f"m{number:03}")) for number in range(200)]
    state = view({VARIANT_AUTOSCALINGS: values}, minutes=1)
    text = fleet_page(state)
    assert text.count("<h2>ns/m") == MOST_DRAWN
    assert "<h2>ns/m150" in fleet_page(state, model="ns/m150")
    assert len(text) < 1_000_000


def test_samples_are_kept_for_hours_and_models_that_are_gone_are_dropped() -> None:
    """Memory is bounded."""
    first = fleet(usual_objects())
    late = replace(first, time=NOW + timedelta(seconds=KEPT_SECONDS + 1))
    history = record(record({}, first), late)
    assert [item.time for item in history["ns", "meta/llama-3.1-8b"]] == [late.time.timestamp()]
    assert record(history, fleet({VARIANT_AUTOSCALINGS: []})) == {}


QUESTIONS: dict[str, tuple[dict[str, str], Question, list[str]]] = {
    "nothing": ({}, Question(), []),
    "nodes": (
        {"nodes": "2", "type": "H100x8"},
        Question(addition=NodeAddition(accelerator="H100", accelerators=8, nodes=2)),
        [],
    ),
    "all": (
        {"nodes": "1", "type": "L4x4", "drain": " n1 ", "factor": "1.5", "model": "ns/m"},
        Question(
            addition=NodeAddition(accelerator="L4", accelerators=4), drained="n1", factor=1.5, model="ns/m"
        ),
        [],
    ),
    "every number wrong": (
        {"nodes": "1e9", "factor": "nan"},
        Question(),
        [
            "nodes: must be a number from 0 to 64, was '1e9'",
            "factor: must be a number from 0 to 100, was 'nan'",
        ],
    ),
    "half a node": ({"nodes": "1.5", "type": "H100x8"}, Question(), ["nodes: must be a whole number"]),
    "nodes of no type": (
        {"nodes": "1", "type": "H100"},
        Question(),
        ["type: must be ACCELERATORxCOUNT with a count from 1 to 9999, such as H100x8"],
    ),
}


@pytest.mark.parametrize(("query", "want", "problems"), QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_question_is_read_from_a_form(query: dict[str, str], want: Question, problems: list[str]) -> None:
    """All mistakes are reported."""
    question, wrong = read_question(query)
    assert wrong == problems
    assert wrong or question == want


def test_more_nodes_serve_what_was_missing() -> None:
    """The plan for the present cluster is beside it."""
    made = answer(Question(addition=NodeAddition(accelerator="L4", accelerators=4)))
    (effect,) = made.effects
    assert effect.unmet[0] > 0
    assert effect.unmet[1] == 0
    assert effect.replicas[1] > effect.replicas[0] == 2
    text = what_if_page(view(busy_objects()), made)
    assert "1 more node of 4 L4: the demand of every model is met" in text
    assert "new-l4-1" in text


def test_more_demand_or_a_drained_node_makes_it_shorter() -> None:
    """What would help then is named."""
    (now,) = answer(Question()).effects
    (busier,) = answer(Question(factor=1.5, model="ns/meta/llama-3.1-8b")).effects
    drained = answer(Question(drained="n1"))
    assert busier.unmet[1] > now.unmet[0]
    assert drained.effects[0].unmet[1] > now.unmet[0]
    assert "would help" in what_if_page(view(busy_objects()), drained)


def test_a_factor_multiplies_every_known_rate_of_a_load() -> None:
    """An unknown rate stays unknown."""
    inputs = planned(live(busy_objects())).inputs
    after, problems = change_inputs(inputs, Question(factor=2.0, model="ns/meta/llama-3.1-8b"))
    (load,), (more,) = inputs.snapshot.loads, after.snapshot.loads

    assert problems == []
    assert load.requests_per_second
    assert more.requests_per_second == 2 * load.requests_per_second
    assert more.required_requests_per_second == 2 * load.required_requests_per_second
    assert (more.releasable_requests_per_second is None) == (load.releasable_requests_per_second is None)


def test_a_question_about_unknown_things_is_a_problem() -> None:
    """The form keeps what was asked."""
    gathering = planned(live(busy_objects()))
    question = Question(drained="n9", factor=2.0, model="ns/none")
    _, problems = change_inputs(gathering.inputs, question)
    assert problems == [
        "model: no model 'ns/none' has a known demand",
        "drain: no node 'n9': there are n1",
    ]
    assert "there are n1" in question_page(view(busy_objects()), question, problems)
