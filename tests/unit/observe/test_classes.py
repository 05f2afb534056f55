"""Service classes that list a model by a name that differs from that of its variants."""

from __future__ import annotations

import pytest
from support.observations import claim

from controller.observe.classes import class_finding
from controller.observe.conditions import ConditionReason
from controller.observe.policies import Policies, ServiceClass

LISTED = "meta/Llama-3.1-70B"
PREMIUM = ServiceClass(name="Premium", priority=1, ttft_ms={LISTED: 1500}, tpot_ms={})
POLICIES = Policies(classes={("classes", "premium"): PREMIUM}, default_classes="classes")
NAMES = {
    "in another case": ("meta/llama-3.1-70b", True),
    "with a letter too few": ("meta/lama-3.1-70b", True),
    "of another size": ("meta/llama-3.1-8b", False),
    "a variation of the model": ("meta/llama-3.1-70b-instruct", False),
    "of another model": ("qwen/qwen2.5-32b", False),
}


@pytest.mark.parametrize(("model_id", "is_alike"), NAMES.values(), ids=NAMES)
def test_a_model_that_a_class_lists_by_almost_the_same_name_is_told(model_id: str, *, is_alike: bool) -> None:
    """It has the lowest priority, although the best one was meant for it."""
    want = (
        (
            False,
            ConditionReason.CLASS_NOT_FOUND,
            "no service class lists the model: priority 100, the lowest; 'Premium' lists"
            " 'meta/Llama-3.1-70B': is this model meant?",
        )
        if is_alike
        else (True, ConditionReason.NO_CLASS, "no service class applies: priority 100, the lowest")
    )

    assert class_finding(claim(model_id=model_id), POLICIES) == want


def test_classes_that_apply_by_reference_only_are_not_compared() -> None:
    """They list models that others may mean."""
    elsewhere = Policies(classes={("others", "premium"): PREMIUM}, default_classes="classes")

    assert class_finding(claim(model_id="meta/llama-3.1-70b"), elsewhere)[0]
