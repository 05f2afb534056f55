"""Service classes that list a model by a name that differs from that of its variants."""

from __future__ import annotations

import pytest
from support.observations import claim

from controller.observe.classes import class_finding
from controller.observe.conditions import ConditionReason, Finding
from controller.observe.policies import Policies, ServiceClass

LISTED = "meta/Llama-3.1-70B"
PREMIUM = ServiceClass(name="Premium", priority=1, ttft_ms={LISTED: 1500}, tpot_ms={})
POLICIES = Policies(classes={("classes", "premium"): PREMIUM}, default_classes="classes")
HINT = "priority 100, the lowest; 'Premium' lists 'meta/Llama-3.1-70B': is this model meant?"
CASE = (False, ConditionReason.CLASS_NOT_FOUND, f"no service class lists the model: {HINT}")
LETTER = (True, ConditionReason.NO_CLASS, f"no service class applies: {HINT}")
OTHER = (True, ConditionReason.NO_CLASS, "no service class applies: priority 100, the lowest")
NAMES = {
    "in another case": ("meta/llama-3.1-70b", CASE),
    "with a letter too few": ("meta/lama-3.1-70b", LETTER),
    "of another size": ("meta/llama-3.1-8b", OTHER),
    "a variation of the model": ("meta/llama-3.1-70b-instruct", OTHER),
    "a short variation of the model": ("meta/llama-3.1-70b-awq", OTHER),
    "of another model": ("qwen/qwen2.5-32b", OTHER),
}


@pytest.mark.parametrize(("model_id", "want"), NAMES.values(), ids=NAMES)
def test_a_model_that_a_class_lists_by_almost_the_same_name_is_told(model_id: str, want: Finding) -> None:
    """It has the lowest priority, although the best one may be meant for it.

    Only another case is certainly a mistake: a new model may have almost the name of an older one.
    """
    assert class_finding(claim(model_id=model_id), POLICIES) == want


def test_classes_that_apply_by_reference_only_are_not_compared() -> None:
    """They list models that others may mean."""
    elsewhere = Policies(classes={("others", "premium"): PREMIUM}, default_classes="classes")

    assert class_finding(claim(model_id="meta/llama-3.1-70b"), elsewhere)[0]
