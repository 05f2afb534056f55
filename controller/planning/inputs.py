"""The input of one plan: snapshot and settings, and their JSON, to save and replay a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

import msgspec
from msgspec import inspect

from controller.planning.ranges import negative_or_endless, refuse
from controller.planning.snapshot import Snapshot

_FORMER: Final = frozenset(
    {
        "courses",
        "flap_reversals",
        "flap_window_seconds",
        "held_replicas",
        "most_preempted",
        "state",
        "unmet_unit",
    }
)
"""Members that earlier versions saved, and that have no effect any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Prices and limits of planning. Raises ValueError for an invalid duration."""

    standing_seconds: float = 600.0
    """How long a replica mix is expected to last, in seconds: start costs are amortized over this time."""

    most_moves: int = 0
    """The maximum number of replicas that one plan evicts to defragment nodes; with 0 they are only reported.
    """

    relief_solves: int = 12
    """The maximum number of candidate reliefs that are evaluated for one plan, by planning again."""

    deterministic_seconds: float = 2.0
    """Effort limit of each placement in CP-SAT's deterministic time, for up to about 2,500 models on five
    node types; it is raised in proportion for more models, or for more shared sizes and types.
    """

    wall_seconds: float = 20.0
    """Safety limit in wall time for each placement; one that reaches it may differ from run to run."""

    names_all: bool = True
    """Whether messages in one namespace may name variants of other namespaces."""

    seed: int = 1
    """Random seed of the solver."""

    def __post_init__(self) -> None:
        wrong = negative_or_endless(standing_seconds=self.standing_seconds)
        if not self.standing_seconds:
            wrong.append("standing_seconds: must be greater than 0")
        refuse(wrong)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningInputs:
    """The arguments of `plan`."""

    snapshot: Snapshot
    settings: Settings = field(default_factory=Settings)


def to_json(inputs: PlanningInputs) -> bytes:
    """Return the inputs as indented JSON; equal inputs give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(inputs, order="deterministic"), indent=2) + b"\n"


def from_json(text: bytes | str) -> PlanningInputs:
    """Return the inputs; omitted members have their defaults.

    Raises ValueError, naming the member, for an invalid document.
    """
    try:
        wrong = [*_unknown(msgspec.json.decode(text), inspect.type_info(PlanningInputs))]
        if wrong:
            raise ValueError("; ".join(wrong))
        return msgspec.json.decode(text, type=PlanningInputs)
    except msgspec.MsgspecError as error:
        what, at, place = str(error).rpartition(" - at `$")
        if not at:
            raise ValueError(str(error)) from error
        what = what.replace("Expected ", "must be ").replace(", got ", ", was ")
        raise ValueError(f"{place.strip('.`')}: {what}") from error


def _unknown(value: object, shape: inspect.Type, where: str = "") -> Iterator[str]:
    """Yield a message for each member that a decoder would ignore, and for each unknown enum value.

    Values of the wrong type are left to the decoder.
    """
    match shape:
        case inspect.DataclassType() if isinstance(value, dict):
            shapes = {field.encode_name: field.type for field in shape.fields}
            value = {name: member for name, member in value.items() if name not in _FORMER}
            for name, member in value.items():
                place = f"{where}.{name}" if where else name
                if name in shapes:
                    yield from _unknown(member, shapes[name], place)
                else:
                    yield f"{place}: there is no such member; {_instead(name, list(shapes))}"
        case inspect.CollectionType() if isinstance(value, list):
            for position, item in enumerate(value):
                yield from _unknown(item, shape.item_type, f"{where}[{position}]")
        case inspect.UnionType():
            for option in shape.types:
                yield from _unknown(value, option, where)
        case inspect.EnumType() if isinstance(value, str):
            allowed = [str(item.value) for item in shape.cls]
            if value not in allowed:
                yield f"{where}: must be one of {', '.join(allowed)}, was {value!r}"


def _instead(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"is {close[0]} meant?" if close else f"allowed are {', '.join(sorted(known))}"
