"""Among tenants: what has to be asked about the writers of objects before these are planned. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.schema.json import Json
from controller.observe.classes import class_questions, class_refusal
from controller.observe.gather import malformation
from controller.observe.grants import Question
from controller.observe.policies import Policies
from controller.observe.prices import cost_questions, cost_refusal


def questions(autoscalings: Iterable[Json], policies: Policies) -> frozenset[Question]:
    """Return whether the writers of VariantAutoscalings may have what these use; objects share answers."""
    readable = [item for item in autoscalings if not malformation(item)]
    return frozenset(
        question
        for item in readable
        for question in (*class_questions(item, policies), *cost_questions(item))
    )


def refusals(autoscaling: Json, policies: Policies) -> tuple[str, ...]:
    """Return a sentence for each privilege that an object uses and its writer has not."""
    return tuple(filter(None, (class_refusal(autoscaling, policies), cost_refusal(autoscaling, policies))))
