"""Content of the display at one time, independent of its medium."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hack.demo.observation import Observation
from hack.demo.scenario import Chapter


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One observation with its chapter and the most recent texts."""

    observation: Observation
    chapter: Chapter
    decisions: tuple[str, ...]
    """The most recent decisions' messages, newest last."""

    notes: tuple[str, ...]
    """The most recent actions and events, newest last."""


class Show(Protocol):
    """A display of the demo."""

    def update(self, frame: Frame) -> None:
        """Show a frame."""

    def note(self, text: str) -> None:
        """Show a text at once."""

    def close(self) -> None:
        """Release the terminal."""
