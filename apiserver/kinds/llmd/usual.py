"""Conversion of VariantAutoscalings in the usual form, several times as fast as by `conversion`.

Conversion is part of every read. The usual form is that of a released shape as releases and API servers write
it, with derived fields that nobody has changed. What conversion does not change stays encoded. All others are
left to `conversion`; for an object in the usual form, both have the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, VARIANT_ID
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.annotations import LIMIT_BYTES
from apiserver.schema.undecoded import may_exceed_numbers

_Text = str | UnsetType
_Count = Annotated[int, Meta(ge=1)]
_Undecoded = Raw | UnsetType


class _Metadata(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    name: Raw
    generate_name: _Undecoded = UNSET
    namespace: _Undecoded = UNSET
    self_link: _Undecoded = UNSET
    uid: _Undecoded = UNSET
    resource_version: _Undecoded = UNSET
    generation: _Undecoded = UNSET
    creation_timestamp: _Undecoded = UNSET
    deletion_timestamp: _Undecoded = UNSET
    deletion_grace_period_seconds: _Undecoded = UNSET
    labels: _Undecoded = UNSET
    annotations: _Undecoded = UNSET
    owner_references: _Undecoded = UNSET
    finalizers: _Undecoded = UNSET
    managed_fields: _Undecoded = UNSET


class _Performance(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    perf_parms: _Undecoded = UNSET
    max_batch_size: _Undecoded = UNSET


class _Candidate(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    acc: str
    acc_count: _Count
    max_batch_size: Raw
    perf_parms: _Undecoded = UNSET


class _Profile(Struct, gc=False, forbid_unknown_fields=True):
    accelerators: list[_Candidate]


class Spec(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """The fields of the spec in both versions."""

    scale_target_ref: _Undecoded = UNSET
    model_id: _Text = msgspec.field(default=UNSET, name="modelID")
    variant_cost: _Undecoded = UNSET
    variant_id: _Text = msgspec.field(default=UNSET, name="variantID")
    accelerator: _Text = UNSET
    accelerator_count: _Count | UnsetType = UNSET
    slo_class_ref: _Undecoded = UNSET
    variant_profile: _Performance | UnsetType = UNSET
    model_profile: _Undecoded = UNSET


class Status(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """The fields of the status in both versions."""

    current_alloc: _Undecoded = UNSET
    desired_optimized_alloc: _Undecoded = UNSET
    actuation: _Undecoded = UNSET
    decision: _Undecoded = UNSET
    conditions: _Undecoded = UNSET


class Usual(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """A VariantAutoscaling without unknown fields."""

    api_version: Literal["llmd.ai/v1alpha1", "llmd.ai/v1alpha2"]
    kind: Literal["VariantAutoscaling"]
    metadata: _Metadata
    spec: Spec
    status: Status | UnsetType = UNSET


class _Labels(Struct, gc=False):
    accelerator: str = msgspec.field(default="", name=ACCELERATOR_LABEL)


class _Owner(Struct, gc=False):
    kind: str = ""
    name: _Text = UNSET
    controller: bool = False


class _Source(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    model_profile: _Undecoded = UNSET
    position: int = -1
    variant_id: str = msgspec.field(default="", name="variantID")


_DECISION: Final = '{"fields":[{"path":["status","decision"],"value":'
_DECISION_END: Final = "}]}"
_TARGET: Final = '{"fields":[{"path":["spec","scaleTargetRef"],"derived":'
_TARGET_END: Final = "}]"
_SOURCE: Final = ',"source":'
"""The parts of the annotation, as `apiserver.schema.kept` writes them."""

_ANNOTATION: Final = ANNOTATION.encode()
_object: Final = msgspec.json.Decoder(Usual).decode
_objects: Final = msgspec.json.Decoder(list[Usual]).decode
_labels: Final = msgspec.json.Decoder(_Labels).decode
_profile: Final = msgspec.json.Decoder(_Profile).decode
_owners: Final = msgspec.json.Decoder(list[_Owner]).decode
_source: Final = msgspec.json.Decoder(_Source).decode
_texts: Final = msgspec.json.Decoder(dict[str, str]).decode
_any: Final = msgspec.json.Decoder(Raw).decode
_encode: Final = msgspec.json.Encoder().encode


class _UnusualError(ValueError):
    """The object must be converted by `conversion`."""


def converted(texts: Sequence[Raw], api_version: str) -> Raw | None:
    """Return objects in another version, separated by commas; None if `conversion` must convert one."""
    way = _WAYS.get(api_version)
    if way is None:
        return None
    try:
        values = _objects(b"[%b]" % b",".join(texts)) if len(texts) > 1 else [_object(texts[0])]
        for value in values:
            if value.api_version != api_version:
                way(value)
                value.api_version = api_version  # type: ignore[assignment] # it is a key of `_WAYS`
    except (ValueError, RecursionError):  # another form than is declared above, or nested too deeply
        return None
    return Raw(memoryview(_encode(values))[1:-1])


def _to_hub(value: Usual) -> None:
    spec, metadata, status = value.spec, value.metadata, value.status
    if status is not UNSET and status.decision is not UNSET:
        raise _UnusualError
    kept = _taken(metadata)
    if kept:
        _restore_decision(status, kept)
    source = ""
    if spec.variant_id is not UNSET:
        if spec.model_profile is not UNSET:
            raise _UnusualError
        if spec.variant_id != _identifier(spec):
            source = _own_identifier(spec.variant_id)
        spec.variant_id = UNSET
    elif spec.model_profile is not UNSET:
        source = _choose_candidate(value, spec.model_profile)
    else:
        _check_current(spec)
    if spec.scale_target_ref is UNSET:
        target = _implied_target(metadata)
        spec.scale_target_ref = Raw(target)
        _keep(metadata, f"{_TARGET}{target}{_TARGET_END}{source}}}")
    elif source:
        raise _UnusualError


def _to_spoke(value: Usual) -> None:
    spec, metadata, status = value.spec, value.metadata, value.status
    if spec.scale_target_ref is UNSET or spec.model_profile is not UNSET or spec.variant_id is not UNSET:
        raise _UnusualError
    kept = _taken(metadata)
    own = _restore_target(value, kept) if kept else ""
    if spec.variant_profile is not UNSET:
        derived = _identifier(spec)
        spec.variant_id = own or derived
    elif own:
        raise _UnusualError
    elif spec.model_profile is UNSET:
        _check_current(spec)
    if status is not UNSET and status.decision is not UNSET:
        _keep(metadata, f"{_DECISION}{bytes(status.decision).decode()}{_DECISION_END}")
        status.decision = UNSET


_WAYS: Final = {HUB: _to_hub, SPOKE: _to_spoke}


def _check_current(spec: Spec) -> None:
    """Raise _UnusualError unless both versions represent a spec alike."""
    _check_unprofiled(spec)
    if spec.scale_target_ref is UNSET:
        raise _UnusualError


def _check_unprofiled(spec: Spec) -> None:
    if (
        spec.accelerator is not UNSET
        or spec.accelerator_count is not UNSET
        or spec.variant_profile is not UNSET
    ):
        raise _UnusualError


def _identifier(spec: Spec) -> str:
    """Return the derived identifier of the legacy shape. Raises _UnusualError if a field is missing."""
    model, accelerator, count = spec.model_id, spec.accelerator, spec.accelerator_count
    if (
        not model
        or not accelerator
        or count is UNSET
        or spec.slo_class_ref is UNSET
        or spec.variant_profile is UNSET
        or spec.variant_profile.perf_parms is UNSET
        or not (accelerator.isalnum() and accelerator.isascii() and model.isprintable())
    ):
        raise _UnusualError
    return f"{model}-{accelerator}-{count}"


def _own_identifier(identifier: str) -> str:
    """Return the source for the annotation that keeps an identifier that a user chose."""
    if not VARIANT_ID.fullmatch(identifier):
        raise _UnusualError
    return f'{_SOURCE}{{"variantID":{_encode(identifier).decode()}}}'


def _implied_target(metadata: _Metadata) -> str:
    """Return the target of an object that does not name one, as JSON, see `identity.implied_target`."""
    name = bytes(metadata.name)
    if not name.startswith(b'"'):
        raise _UnusualError
    if metadata.owner_references is not UNSET:
        for owner in _owners(metadata.owner_references):
            if owner.controller and owner.kind == "Deployment" and owner.name is not UNSET:
                name = _encode(owner.name)
                break
    return f'{{"apiVersion":"apps/v1","kind":"Deployment","name":{name.decode()}}}'


def _choose_candidate(value: Usual, text: Raw) -> str:
    """Replace the modelProfile by the candidate in use; return the source for the annotation."""
    spec = value.spec
    _check_unprofiled(spec)
    candidates = _profile(text).accelerators
    position = _position(value, candidates)
    candidate = candidates[position]
    spec.accelerator, spec.accelerator_count = candidate.acc, candidate.acc_count
    spec.variant_profile = _Performance(candidate.perf_parms, candidate.max_batch_size)
    spec.model_profile = UNSET
    return f'{_SOURCE}{{"modelProfile":{bytes(text).decode()},"position":{position}}}'


def _restore_target(value: Usual, kept: str) -> str:
    """Remove the scale target, and restore a kept modelProfile; return a kept identifier, or else ""."""
    target = _implied_target(value.metadata)
    head = f"{_TARGET}{target}{_TARGET_END}"
    if value.spec.scale_target_ref != Raw(target) or not kept.startswith(head):
        raise _UnusualError
    value.spec.scale_target_ref = UNSET
    if kept == head + "}":
        return ""
    if not (kept.startswith(_SOURCE, len(head)) and kept.endswith("}")) or may_exceed_numbers(kept):
        raise _UnusualError
    source = _source(kept[len(head) + len(_SOURCE) : -1])
    if source.variant_id and source.model_profile is UNSET:
        return source.variant_id
    _restore_profile(value, source)
    return ""


def _restore_profile(value: Usual, source: _Source) -> None:
    """Replace the fields of the candidate in use by the kept modelProfile."""
    spec, performance = value.spec, value.spec.variant_profile
    if performance is UNSET or source.model_profile is UNSET or source.variant_id:
        raise _UnusualError
    candidates = _profile(source.model_profile).accelerators
    if _position(value, candidates) != source.position:
        raise _UnusualError
    candidate = candidates[source.position]
    if (
        candidate.acc != spec.accelerator
        or candidate.acc_count != spec.accelerator_count
        or candidate.perf_parms != performance.perf_parms
        or candidate.max_batch_size != performance.max_batch_size
    ):
        raise _UnusualError
    spec.model_profile = source.model_profile
    spec.accelerator = spec.accelerator_count = spec.variant_profile = UNSET


def _position(value: Usual, candidates: list[_Candidate]) -> int:
    """Return the index of the candidate that the label selects, or of the first one without a label."""
    labels, status = value.metadata.labels, value.status
    label = _labels(labels).accelerator if labels is not UNSET else ""
    if label:
        return [candidate.acc for candidate in candidates].index(label)
    if not candidates or (status is not UNSET and status.current_alloc is not UNSET):
        raise _UnusualError
    return 0


def _restore_decision(status: Status | UnsetType, kept: str) -> None:
    if (
        status is UNSET
        or not (kept.startswith(_DECISION) and kept.endswith(_DECISION_END))
        or may_exceed_numbers(kept)
    ):
        raise _UnusualError
    status.decision = _any(kept[len(_DECISION) : -len(_DECISION_END)])


def _taken(metadata: _Metadata) -> str:
    """Remove the annotation; return its text, or an empty text if there was none."""
    if metadata.annotations is UNSET:
        return ""
    text = bytes(metadata.annotations)
    if text.find(_ANNOTATION) < 0 and text.find(b"\\") < 0:
        return ""
    annotations = _texts(text)
    kept = annotations.pop(ANNOTATION, "")
    metadata.annotations = Raw(_encode(annotations)) if annotations else UNSET
    return kept


def _keep(metadata: _Metadata, text: str) -> None:
    """Set the annotation. Raises _UnusualError if all annotations together may be too large."""
    others = {} if metadata.annotations is UNSET else _texts(metadata.annotations)
    annotations = _encode(others | {ANNOTATION: text})
    if len(annotations) > LIMIT_BYTES:
        raise _UnusualError
    metadata.annotations = Raw(annotations)
