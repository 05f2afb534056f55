"""The complete input of one plan as JSON, so that a decision can be saved, replayed and examined."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from controller.planning.members import member_problems
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningInputs:
    """The arguments of `plan`."""

    snapshot: Snapshot
    state: PlanningState = field(default_factory=PlanningState)
    settings: Settings = field(default_factory=Settings)


def to_json(inputs: PlanningInputs) -> bytes:
    """Return the inputs as indented JSON; equal inputs give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(inputs, order="deterministic"), indent=2) + b"\n"


def from_json(text: bytes | str) -> PlanningInputs:
    """Return the inputs; omitted members have their defaults.

    Raises ValueError, naming the member, for an invalid document.
    """
    try:
        wrong = [*member_problems(msgspec.json.decode(text), PlanningInputs)]
        if wrong:
            raise ValueError("; ".join(wrong))
        return msgspec.json.decode(text, type=PlanningInputs)
    except msgspec.MsgspecError as error:
        what, at, place = str(error).rpartition(" - at `$")
        if not at:
            raise ValueError(str(error)) from error
        what = what.replace("Expected ", "must be ").replace(", got ", ", was ")
        raise ValueError(f"{place.strip('.`')}: {what}") from error
