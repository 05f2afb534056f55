"""Benchmark cases: the requests, and the check of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE
from apiserver.schema.json import Json
from hack.bench.conversion import straightforward
from hack.bench.run import OURS, STRAIGHTFORWARD
from hack.bench.servers import Answerer
from hack.calling import variants
from hack.calling.conversion_reviews import converted_objects, review
from hack.calling.load import WrongAnswerError
from webhooks.app import convert_objects
from webhooks.review import decode_conversion, encode_converted


def answer_ours(body: bytes) -> bytes:
    """Return the response of `/convert` to a review, without a server."""
    request = decode_conversion(body)
    return encode_converted(request.uid, list(convert_objects(request)))


ANSWERERS: Final[Mapping[str, Answerer]] = {OURS: answer_ours, STRAIGHTFORWARD: straightforward.answer}

_MANY: Final = (100, 5000)
"""Numbers of objects in long lists."""

_NEW: Final = (variants.current, variants.decided_object)
_KEPT_BY: Final = frozenset({ANNOTATION, straightforward.ANNOTATION})


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One review, with a separate body for each server, because each only reads its own annotation."""

    name: str
    count: int
    """Number of objects in the review."""
    desired: str
    """Requested version, with its group."""
    bodies: Mapping[str, bytes]

    @property
    def direction(self) -> str:
        """Direction of the conversion, as printed."""
        return f"to {self.desired.rpartition('/')[2]}"


def cases() -> Sequence[Case]:
    """Return all cases: each shape alone in both directions, then long lists in both directions.

    Raises WrongAnswerError unless both servers agree on each, and converting back restores the original.
    """
    every_case = [case for name, make in variants.SHAPES.items() for case in _there_and_back(name, [make(7)])]
    for count in _MANY:
        every_case += _there_and_back("nothing kept", variants.mixed_objects((variants.current,), count))
        every_case += _there_and_back("written in v1alpha1", variants.mixed_objects(variants.OLD, count))
        every_case += _there_and_back("written in v1alpha2", variants.mixed_objects(_NEW, count))
    return every_case


def _there_and_back(name: str, values: Sequence[Json]) -> list[Case]:
    version = values[0]["apiVersion"]
    there = _case(name, SPOKE if version == HUB else HUB, dict.fromkeys(ANSWERERS, values))
    answered = _answers(there)
    _check_agreement(there, answered)
    back = _case(f"{name}, back", version, answered)
    returned = _answers(back)
    if any(list(values) != came for came in returned.values()):
        raise WrongAnswerError(f"{name}: converting back does not restore the original")
    return [there, back]


def _case(name: str, desired: str, values: Mapping[str, Sequence[Json]]) -> Case:
    count = len(next(iter(values.values())))
    bodies = {server: review(items, desired) for server, items in values.items()}
    return Case(name=name, count=count, desired=desired, bodies=bodies)


def _answers(case: Case) -> dict[str, list[Json]]:
    """Return the objects of a case as each server's handler converts them, in this process."""
    return {server: converted_objects(handle(case.bodies[server])) for server, handle in ANSWERERS.items()}


def _check_agreement(case: Case, answered: Mapping[str, Sequence[Json]]) -> None:
    """Raise WrongAnswerError unless all converted objects are equal, apart from the servers' annotations."""
    first, *others = ([_without_kept(value) for value in values] for values in answered.values())
    if any(other != first for other in others):
        raise WrongAnswerError(f"{case.name} {case.direction}: the servers return different objects")


def _without_kept(value: Json) -> Json:
    annotations = value["metadata"].get("annotations", {})
    others = {name: text for name, text in annotations.items() if name not in _KEPT_BY}
    return value | {"metadata": value["metadata"] | {"annotations": others}}
