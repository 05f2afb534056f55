"""What one look at the demo shows, whatever it is shown on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hack.demo.observation import Observation
from hack.demo.scenario import Chapter


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One observation, where in the story it is, and the newest words."""

    observation: Observation
    chapter: Chapter
    decisions: tuple[str, ...]
    """Newest decision sentences, newest last."""

    notes: tuple[str, ...]
    """What was done or happened besides, newest last."""


class Show(Protocol):
    """Something that a demo can be watched on."""

    def update(self, frame: Frame) -> None:
        """Show the newest frame."""

    def note(self, text: str) -> None:
        """Say something at once."""

    def close(self) -> None:
        """Leave the screen to what comes next."""
