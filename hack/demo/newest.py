"""The most recent texts: changed decisions, actions and events."""

from __future__ import annotations

from collections import deque

from hack.demo.observation import Observation

_DECISIONS = 5
_NOTES = 6


class Newest:
    """Keeps the last few texts of each kind."""

    def __init__(self) -> None:
        self._decisions: deque[str] = deque(maxlen=_DECISIONS)
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._known: dict[str, tuple[str, str, int | None]] = {}

    def take(self, observation: Observation) -> None:
        """Add the decisions that changed in more than their figures."""
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

    def note(self, text: str) -> None:
        """Add an action or event."""
        self._notes.append(text)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Decisions' messages, newest last."""
        return tuple(self._decisions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes, newest last."""
        return tuple(self._notes)
