"""With tenants, the access questions about writers of objects to answer before planning. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.schema.json import Json
from controller.observe.classes import class_questions
from controller.observe.gather import malformation
from controller.observe.grants import Question
from controller.observe.policies import Policies
from controller.observe.prices import cost_questions


def questions(autoscalings: Iterable[Json], policies: Policies) -> frozenset[Question]:
    """Return the access questions about the writers of VariantAutoscalings, without duplicates."""
    readable = [item for item in autoscalings if not malformation(item)]
    return frozenset(
        question
        for item in readable
        for question in (*class_questions(item, policies), *cost_questions(item))
    )
