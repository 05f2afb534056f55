"""Annotations of llm-d on autoscalers: what they say, and what is wrong with them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.annotated import TERMS, hpa, made_by_keda, scaled_object
from support.gathering import placed
from support.manifests import autoscaler

from apiserver.kinds.annotated import cost_of, managed_autoscalers, model_of, term_problems
from apiserver.kinds.decision_record import read_record, record_text

MODEL = "metadata.annotations[llm-d.ai/model-id]: "
COST = "metadata.annotations[llm-d.ai/variant-cost]: "
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an empty model": (
        {"llm-d.ai/model-id": ""},
        f'{MODEL}Invalid value: "": must be at least 1 character long',
    ),
    "a negative cost": (
        {"llm-d.ai/variant-cost": "-5"},
        f'{COST}Invalid value: "-5": must be a non-negative decimal number such as 10 or 10.5',
    ),
    "a cost that is no number": (
        {"llm-d.ai/variant-cost": "cheap"},
        f'{COST}Invalid value: "cheap": must be a non-negative decimal number such as 10 or 10.5',
    ),
    "a misspelt name": (
        {"llm-d.ai/variant_cost": "5"},
        "metadata.annotations[llm-d.ai/variant_cost]: has no effect: is llm-d.ai/variant-cost meant?",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_path(name: str) -> None:
    """A cost that is not allowed counts as absent."""
    terms, want = WRONG[name]
    value = hpa("chat", terms=terms)

    assert list(term_problems(value)) == [want]
    assert cost_of(value) is None
    assert bool(model_of(value)) == (not want.startswith(MODEL))


def test_a_missing_model_is_required() -> None:
    """It is told like an empty one."""
    value = placed(autoscaler("chat"), annotations={"llm-d.ai/managed": "true"})

    assert list(term_problems(value)) == [f"{MODEL}Required value"]
    assert model_of(value) == ""


def test_the_right_terms_have_no_problems() -> None:
    """Annotations of others are no concern."""
    value = hpa("chat", terms={"llm-d.ai/variant-cost": "12.50", "llm-d.ai/deployed-by": "helm"})

    assert list(term_problems(value)) == []
    assert (model_of(value), cost_of(value)) == (TERMS["llm-d.ai/model-id"], Decimal("12.50"))


def test_only_autoscalers_with_the_value_true_are_managed() -> None:
    """The copy that KEDA makes of a ScaledObject is not, since the ScaledObject is."""
    others = [hpa(text, terms={"llm-d.ai/managed": text}) for text in ("false", "True", "yes", "")]
    scaled = [scaled_object("chat", "chat"), scaled_object("other", "x", terms={"llm-d.ai/managed": "no"})]
    autoscalers = [*others, made_by_keda("chat", "chat"), hpa("code")]

    assert [item["metadata"]["name"] for item in managed_autoscalers(autoscalers, scaled)] == ["code", "chat"]


STATUS = {"decision": {"reason": "Steady", "message": "ä"}}
NO_RECORDS = {
    "nothing": None,
    "no text": "",
    "no JSON": "{",
    "another JSON value": "[]",
    "another object": "{}",
    "a status that is none": '{"kind":"K","name":"n","labels":{},"status":{"decision":3}}',
    "deep nesting": "[" * 100_000,
}


def test_a_record_is_read_as_it_was_written() -> None:
    """Each of its characters is one byte."""
    text = record_text(hpa("chat"), {"model_id": "m"}, STATUS)

    record = read_record(text)
    assert (record["kind"], record["name"]) == ("HorizontalPodAutoscaler", "chat")
    assert (record["labels"], record["status"]) == ({"model_id": "m"}, STATUS)
    assert len(text) == len(text.encode())


@pytest.mark.parametrize("name", NO_RECORDS)
def test_what_is_no_record_is_read_as_an_empty_one(name: str) -> None:
    """Users of the namespace can write anything."""
    assert read_record(NO_RECORDS[name]) == {}
