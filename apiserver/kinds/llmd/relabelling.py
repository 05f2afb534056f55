"""Handling of the accelerator label after creation: changing it has no effect.

In `v1alpha2` the spec names the accelerator in use. Among the candidates of a modelProfile, the label selects
it once, when the object is created. If the label took effect later, it would change the spec of one version
but not of the other, without a new generation.
"""

from __future__ import annotations

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL, label_of
from apiserver.schema.conversion import Kept, kept_text, read_kept
from apiserver.schema.json import Json, JsonValue, as_object
from apiserver.schema.metadata import take_annotation


def kept_when_relabelled(value: Json, old: Json) -> str | None:
    """Return the annotation that preserves the accelerator in use across an update; None if not needed.

    Both objects must include their status, which may determine the candidate in use.
    """
    if label_of(value) == label_of(old) or "modelProfile" not in as_object(value.get("spec")):
        return None
    in_use = _in_use(old)
    if not isinstance(in_use, str) or in_use == _in_use(value):
        return None
    kept = read_kept(take_annotation(value, ANNOTATION)[1])
    return kept_text(Kept(fields=kept.fields, source=kept.source | {"accelerator": in_use}))


def label_advice(value: Json) -> list[str]:
    """Return a warning if an object's label names an accelerator other than the one in use."""
    label, in_use = label_of(value), value["spec"].get("accelerator")
    if label is None or label in {in_use, _in_use(value)}:
        return []
    where = f"metadata.labels[{ACCELERATOR_LABEL}]: {label!r} has no effect"
    if in_use is not None:
        return [f"{where}: spec.accelerator is {in_use!r}"]
    if "modelProfile" in value["spec"]:
        return [f"{where}: another candidate is in use, by spec.accelerator of v1alpha2"]
    return []


def _in_use(value: Json) -> JsonValue:
    return as_object(convert(value, HUB).get("spec")).get("accelerator")
