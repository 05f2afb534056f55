"""Content of the display at one time, with the most recent texts; independent of its medium."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from hack.demo.observation import Observation
from hack.demo.scenario import Chapter, chapter_at

_DECISIONS = 5
_NOTES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One observation with its chapter and the most recent texts."""

    observation: Observation
    chapter: Chapter
    decisions: tuple[str, ...]
    """The most recent decisions' messages, newest last."""

    notes: tuple[str, ...]
    """The most recent actions and events, newest last."""


class FrameMaker:
    """Makes frames, and keeps the last few texts of each kind."""

    def __init__(self) -> None:
        self._decisions: deque[str] = deque(maxlen=_DECISIONS)
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._known: dict[str, tuple[str, str, int | None]] = {}

    def note(self, text: str) -> None:
        """Add an action or event."""
        self._notes.append(text)

    def frame(self, observation: Observation) -> Frame:
        """Add the decisions that changed in more than their figures, and return the frame."""
        for variant in observation.variants:
            state = (variant.reason, variant.bound_by, variant.desired_replicas)
            if variant.message and self._known.get(variant.name) != state:
                self._known[variant.name] = state
                if variant.reason != "Steady":
                    self._decisions.append(variant.message)
        for binding in observation.bindings:
            desired = sum(target.desired_replicas or 0 for target in binding.targets)
            if binding.message and self._known.get(binding.name) != ("", "", desired):
                self._known[binding.name] = ("", "", desired)
                self._decisions.append(f"{binding.name}: {binding.message}")
        return Frame(
            observation=observation,
            chapter=chapter_at(observation.seconds),
            decisions=tuple(self._decisions),
            notes=tuple(self._notes),
        )


class Show(Protocol):
    """A display of the demo."""

    def update(self, frame: Frame) -> None:
        """Show a frame."""

    def note(self, text: str) -> None:
        """Show a text at once."""

    def close(self) -> None:
        """Release the terminal."""
