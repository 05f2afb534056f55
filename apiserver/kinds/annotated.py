"""Autoscalers whose annotations request decisions, as llm-d reads them since its release 0.8.

A HorizontalPodAutoscaler or a ScaledObject of KEDA with `llm-d.ai/managed: "true"` and a model is a variant
with its own name. Target and bounds are those of the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.kinds.llmd.identity import MOST_COST
from apiserver.kinds.llmd.v1alpha2 import ModelName
from apiserver.kinds.meta import DecimalText
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.document import nearest
from apiserver.schema.json import Json, as_object
from apiserver.schema.validation import validate

PREFIX: Final = "llm-d.ai/"
MANAGED: Final = f"{PREFIX}managed"
"""With value `true`, the autoscaler requests decisions; any other value does not."""

MODEL_ID: Final = f"{PREFIX}model-id"
"""The identifier of the model, equal to the label `model_name` of its engines' metrics."""

VARIANT_COST: Final = f"{PREFIX}variant-cost"
"""The cost of one replica."""

_MEMBERS: Final[Mapping[str, str]] = {"modelID": MODEL_ID, "variantCost": VARIANT_COST}
_NAMES: Final = (MANAGED, MODEL_ID, VARIANT_COST)
_LEAST_LIKENESS: Final = 0.8
_TARGET_DEFAULTS: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}
"""What a ScaledObject scales if its reference does not say."""


@declaration()
class AnnotatedTerms:
    """What the annotations of an autoscaler say, with the limits of a VariantAutoscaling."""

    model_id: ModelName
    """The value of `llm-d.ai/model-id`."""

    variant_cost: Maybe[DecimalText] = UNSET
    """The value of `llm-d.ai/variant-cost`."""


def managed_autoscalers(autoscalers: Iterable[Json], scaled_objects: Iterable[Json]) -> Iterator[Json]:
    """Yield the raw objects that request decisions; not the copies that KEDA makes of ScaledObjects."""
    for value in autoscalers:
        if is_managed(value) and KEDA_LABEL not in as_object(value["metadata"].get("labels")):
            yield value
    yield from filter(is_managed, scaled_objects)


def is_managed(value: Json) -> bool:
    """Tell whether a raw autoscaler is annotated to be managed."""
    return _annotations(value).get(MANAGED) == "true"


def model_of(value: Json) -> str:
    """Return the model of a raw autoscaler; empty if it names none, or not by a text that is allowed."""
    return "" if MODEL_ID in _errors(value) else str(_annotations(value)[MODEL_ID])


def cost_of(value: Json) -> Decimal | None:
    """Return the cost of one replica that a raw autoscaler declares; None without a valid one."""
    text = _annotations(value).get(VARIANT_COST)
    return None if text is None or VARIANT_COST in _errors(value) else Decimal(str(text))


def term_problems(value: Json) -> Iterator[str]:
    """Yield what is wrong with the annotations of llm-d on a raw autoscaler, one sentence each."""
    for name, why in _errors(value).items():
        yield f"metadata.annotations[{name}]: {why}"
    if (cost_of(value) or 0) > MOST_COST:
        yield f"metadata.annotations[{VARIANT_COST}]: above {MOST_COST}, so the variant is not planned"
    for name in _annotations(value):
        if name.startswith(PREFIX) and name not in _NAMES:
            ends = [known.removeprefix(PREFIX) for known in _NAMES]
            if close := nearest(name.removeprefix(PREFIX), ends, likeness=_LEAST_LIKENESS):
                yield f"metadata.annotations[{name}]: has no effect: is {PREFIX}{close} meant?"


def reference_of(value: Json) -> Json:
    """Return the reference of a raw autoscaler to its target, with KEDA's defaults."""
    return _TARGET_DEFAULTS | as_object(as_object(value.get("spec")).get("scaleTargetRef"))


def _errors(value: Json) -> Mapping[str, str]:
    annotations = _annotations(value)
    # Each cycle needs the terms of each object several times.
    return _term_errors(
        tuple((member, str(annotations[name])) for member, name in _MEMBERS.items() if name in annotations)
    )


@lru_cache(maxsize=16384)  # each cycle needs the terms of each object several times
def _term_errors(terms: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {_MEMBERS[str(error.path)]: error.body for error in validate(AnnotatedTerms, dict(terms))}


def _annotations(value: Json) -> Json:
    return as_object(as_object(value.get("metadata")).get("annotations"))
