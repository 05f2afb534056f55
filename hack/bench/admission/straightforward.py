"""The straightforward server: `json`, `jsonschema` with the generated schema, and a diff by `jsonpatch`.

It is a typical first implementation, done properly: validators are built once, every error is listed, and
nothing is deliberately slow. Schema, rules and defaults come from our declarations, so both servers do the
same work, and a faster rule benefits both.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import jsonpatch
from jsonschema import Draft202012Validator

from apiserver.kinds.authorship import WRITTEN_BY, is_recorded, record_of, writer_record, writer_values
from apiserver.kinds.registry import KINDS
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import Reduced, node_of
from apiserver.schema.rules import ValidationRule
from apiserver.schema.ruling import change_errors, is_check, is_transition, rule_errors, rules_on
from apiserver.schema.structural import crd_manifest
from hack.bench.servers import Answerer

Verb = Literal["mutate", "validate"]

_INVALID: Final = 422


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """One version of a kind and its validator."""

    kind: Kind
    version: Version
    validator: Any
    """A `jsonschema` validator, whose type is a protocol without a public name."""

    checks: Reduced[ValidationRule]
    changes: Reduced[ValidationRule]

    def messages(self, value: Json, old: Json | None) -> list[str]:
        """Return all errors of an object with defaults; rules are only checked if the schema is satisfied."""
        problems = [f"{error.json_path}: {error.message}" for error in self.validator.iter_errors(value)]
        return problems or list(self._broken_rules(value, old))

    def _broken_rules(self, value: Json, old: Json | None) -> Iterator[str]:
        yield from (f"{error.path}: {error.body}" for error in rule_errors(self.checks, value))
        if old is not None:
            yield from (f"{error.path}: {error.body}" for error in change_errors(self.changes, old, value))


def answers() -> Mapping[str, Answerer]:
    """Return the handlers of reviews of all kinds, by path."""
    admission = Straightforward(KINDS)
    return {
        "/mutate": partial(admission.answer, "mutate"),
        "/validate": partial(admission.answer, "validate"),
    }


class Straightforward:
    """Handles admission reviews of all kinds."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._known = {
            (f"{kind.group}/{version.name}", kind.kind): Known(
                kind=kind,
                version=version,
                validator=validator,
                checks=rules_on(node_of(version.declaration), is_check),
                changes=rules_on(node_of(version.declaration), is_transition),
            )
            for kind in kinds
            for version, validator in zip(kind.versions, _validators(kind), strict=True)
        }

    def answer(self, verb: Verb, body: bytes) -> bytes:
        """Return the response to a review, from bytes to bytes."""
        return json.dumps(self.respond(verb, json.loads(body))).encode()

    def respond(self, verb: Verb, review: Json) -> Json:
        """Return the AdmissionReview with the response."""
        request = review["request"]
        response: Json = {"uid": request["uid"], "allowed": True}
        value = request["object"]
        known = self._known.get((value["apiVersion"], value["kind"]))
        if known is not None:
            old = request.get("oldObject")
            filled = with_defaults(known.version, value)
            messages = known.messages(filled, old)
            if messages:
                response |= {"allowed": False, "status": {"code": _INVALID, "message": "; ".join(messages)}}
            elif verb == "mutate":
                response |= _patch(value, _with_writer(known.kind, filled, old, request["userInfo"]))
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _with_writer(kind: Kind, value: Json, old: Json | None, user: Json) -> Json:
    """Return the object with the annotation that records who wrote it, if its kind has one."""
    if not is_recorded(kind):
        return value
    is_new = old is None or writer_values(kind, value) != writer_values(kind, old)
    text = record_of(user) if is_new or old is None else writer_record(old)
    metadata = value["metadata"]
    annotations = {**(metadata.get("annotations") or {}), WRITTEN_BY: text}
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def _patch(value: Json, filled: Json) -> Json:
    patch = jsonpatch.make_patch(value, filled)
    if not patch:
        return {}
    encoded = base64.b64encode(patch.to_string().encode()).decode()
    return {"patchType": "JSONPatch", "patch": encoded}


def _validators(kind: Kind) -> Iterator[Draft202012Validator]:
    for version in crd_manifest(kind)["spec"]["versions"]:
        yield Draft202012Validator(version["schema"]["openAPIV3Schema"])
