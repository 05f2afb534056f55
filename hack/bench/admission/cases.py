"""Benchmark cases: the requests, and the check of their responses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import jsonpatch
import msgspec

from apiserver.schema.json import Json, JsonValue
from hack.bench.admission import objects
from hack.bench.admission.straightforward import Verb
from hack.calling import reviews
from hack.calling.load import WrongAnswerError

Outcome = Literal["allowed", "patched", "refused"]

SERVER_NAME: Final = "stowplan-webhooks.stowplan-system.svc"
VERBS: Final[tuple[Verb, ...]] = ("mutate", "validate")
MODEL_CREATE: Final = "Model, create"
MODEL_REFUSED: Final = "Model, refused"
MODEL_UNCHANGED: Final = "Model, update unchanged"
MODEL_CHANGED: Final = "Model, update changed"
VARIANT_CREATE: Final = "VariantAutoscaling, create"

_TIMEOUT_SECONDS: Final = 5
_UNLIKE: Final = 512
"""Number of Models per case, all different: a cache of some hundred workers or backends has evicted the first
one before it is sent again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Reviews that are sent to one path, all with the same outcome."""

    name: str
    verb: Verb
    bodies: tuple[bytes, ...]
    """The reviews, sent cyclically: a single one, or many."""
    outcome: Outcome

    def request(self, body: bytes) -> bytes:
        """Return the HTTP request that carries a review."""
        path = f"/{self.verb}"
        return reviews.http_request(path, body, server_name=SERVER_NAME, timeout_seconds=_TIMEOUT_SECONDS)

    def check(self, body: bytes) -> None:
        """Raise WrongAnswerError unless the body of a response has the expected outcome."""
        response = msgspec.json.decode(body)["response"]
        if _outcome_of(response) != self.outcome:
            raise WrongAnswerError(f"{self.name} on /{self.verb} should be {self.outcome}: {response}")


def cases() -> Sequence[Case]:
    """Return all cases, ordered by object and then by path."""
    requests: Sequence[tuple[str, Callable[[Json], bytes], Outcome]] = (
        (MODEL_CREATE, reviews.create, "patched"),
        (MODEL_UNCHANGED, _update_without_change, "allowed"),
        (MODEL_CHANGED, _update_with_change, "patched"),
        (MODEL_REFUSED, lambda value: reviews.create(objects.spoilt(value)), "refused"),
    )
    models = list(objects.unlike_models(_UNLIKE))
    large = [(name, tuple(map(review, models)), outcome) for name, review, outcome in requests]
    small: tuple[str, tuple[bytes, ...], Outcome] = (
        VARIANT_CREATE,
        (reviews.create(objects.variant()),),
        "patched",
    )
    return [
        Case(name=name, verb=verb, bodies=_for(verb, bodies), outcome=_on(verb, outcome))
        for name, bodies, outcome in (*large, small)
        for verb in VERBS
    ]


def _update_without_change(value: Json) -> bytes:
    stored = objects.stored_object(value)
    return reviews.update(objects.with_other_label(stored), stored)


def _update_with_change(value: Json) -> bytes:
    return reviews.update(objects.with_new_image(value), objects.stored_object(value))


def _outcome_of(response: Json) -> Outcome:
    """Return the outcome in the `response` of a review. An empty patch counts as none."""
    if not response["allowed"]:
        return "refused"
    return "patched" if _patch_of(response) else "allowed"


def _patch_of(response: Json) -> list[Json]:
    """Return the operations of a response's patch; empty without a patch."""
    operations: list[Json] = msgspec.json.decode(base64.b64decode(response.get("patch", "")) or b"[]")
    return operations


def _apply_patch(body: bytes, answer: bytes) -> JsonValue:
    """Return the object of a review with the patch of the response applied."""
    value = msgspec.json.decode(body)["request"]["object"]
    return jsonpatch.apply_patch(value, _patch_of(msgspec.json.decode(answer)["response"]))


def check_agreement(case: Case, answers: Sequence[bytes]) -> None:
    """Raise WrongAnswerError unless all responses to the first review of a case give the same object."""
    first, *others = [_apply_patch(case.bodies[0], answer) for answer in answers]
    if any(other != first for other in others):
        raise WrongAnswerError(f"{case.name} on /{case.verb}: the servers set different defaults")


def _for(verb: Verb, bodies: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return the bodies in the order of a path; `validate` starts in the middle.

    The paths so differ in the bodies that they have just received.
    """
    middle = len(bodies) // 2
    return bodies if verb == "mutate" else (*bodies[middle:], *bodies[:middle])


def _on(verb: Verb, outcome: Outcome) -> Outcome:
    return "allowed" if verb == "validate" and outcome == "patched" else outcome
