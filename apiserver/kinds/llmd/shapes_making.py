"""Constructors of the fields that a shape requires, from known properties or placeholders."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Final

from apiserver.kinds.llmd.identity import UNKNOWN, identifier_of
from apiserver.kinds.llmd.shapes_facts import Facts, shown
from apiserver.schema.json import Json, JsonValue, as_list, as_object

_DEFAULT_BATCH: Final = 256
"""The default maximum batch size of the engines."""

_NO_SERVICE_CLASS: Final = {"name": "service-classes-config", "key": UNKNOWN}
"""A reference to a service class that does not exist, which the controller reports."""

_NO_PARAMETERS: Final = {"decodeParms": {"unknown": "0"}, "prefillParms": {"unknown": "0"}}
"""Performance parameters that every controller recognizes as placeholders: the names that it looks for are
missing. It therefore skips the object and scales nothing by numbers that were never measured."""


def _model(facts: Facts, made_up: list[str]) -> JsonValue:
    return _known(facts.model, UNKNOWN, "spec.modelID", made_up)


def _model_profile(facts: Facts, made_up: list[str]) -> JsonValue:
    where = "spec.modelProfile.accelerators[0]"
    entry = {
        "acc": _known(facts.accelerator, UNKNOWN, f"{where}.acc", made_up),
        "accCount": _known(facts.count, 1, f"{where}.accCount", made_up),
        **_performance(facts, where, made_up),
    }
    return {"accelerators": [entry]}


def _variant_profile(facts: Facts, made_up: list[str]) -> JsonValue:
    return _performance(facts, "spec.variantProfile", made_up)


def _performance(facts: Facts, where: str, made_up: list[str]) -> Json:
    return {
        "perfParms": _known(facts.parameters, _NO_PARAMETERS, f"{where}.perfParms", made_up),
        "maxBatchSize": _known(facts.batch, _DEFAULT_BATCH, f"{where}.maxBatchSize", made_up),
    }


def _accelerator(facts: Facts, made_up: list[str]) -> JsonValue:
    return _known(facts.accelerator, UNKNOWN, "spec.accelerator", made_up)


def _count(facts: Facts, made_up: list[str]) -> JsonValue:
    return _known(facts.count, 1, "spec.acceleratorCount", made_up)


def _service_class(facts: Facts, made_up: list[str]) -> JsonValue:
    return _known(facts.service_class, _NO_SERVICE_CLASS, "spec.sloClassRef", made_up)


def _target(facts: Facts, _: list[str]) -> JsonValue:
    return facts.target


def _identifier(facts: Facts, made_up: list[str]) -> JsonValue:
    parts = (facts.model or UNKNOWN, facts.accelerator or UNKNOWN, facts.count or 1)
    identifier = identifier_of(*parts)
    if identifier != "{}-{}-{}".format(*parts):
        text = f"the names contain characters that are not allowed here; the value is {shown(identifier)}"
        made_up.append(f"spec.variantID: {text}")
    return identifier


MAKERS: Final[Mapping[str, Callable[[Facts, list[str]], JsonValue]]] = {
    "modelID": _model,
    "modelProfile": _model_profile,
    "variantID": _identifier,
    "accelerator": _accelerator,
    "acceleratorCount": _count,
    "sloClassRef": _service_class,
    "variantProfile": _variant_profile,
    "scaleTargetRef": _target,
}
"""Constructor of each spec field. It appends one sentence to the list for each value that it makes up."""


def with_parameters(spec: Json, made_up: list[str]) -> Json:
    """Return the profiles of a spec that lack parameters, with placeholder parameters added."""
    own = spec.get("variantProfile")
    if isinstance(own, dict) and "perfParms" not in own:
        made = _known(None, _NO_PARAMETERS, "spec.variantProfile.perfParms", made_up)
        return {"variantProfile": own | {"perfParms": made}}
    profile = as_object(spec.get("modelProfile"))
    candidates = as_list(profile.get("accelerators"))
    whole = [
        entry | {"perfParms": _known(None, _NO_PARAMETERS, _parameters_of(position), made_up)}
        if isinstance(entry, dict) and "perfParms" not in entry
        else entry
        for position, entry in enumerate(candidates)
    ]
    return {} if whole == candidates else {"modelProfile": profile | {"accelerators": whole}}


def _parameters_of(position: int) -> str:
    return f"spec.modelProfile.accelerators[{position}].perfParms"


def _known(fact: JsonValue, placeholder: JsonValue, path: str, made_up: list[str]) -> JsonValue:
    if fact is not None:
        return fact
    made_up.append(f"{path}: the object has no value; the placeholder is {shown(placeholder)}")
    return copy.deepcopy(placeholder)
