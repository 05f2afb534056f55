"""The demo as plain lines, for logs and pipes: changes only, every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from hack.demo.frame import Frame
from hack.demo.observation import BoundView, ModelView, Observation, VariantView

_EVERY_SECONDS = 5.0


class PlainLines:
    """Writes a line for each new chapter, each model with changed replicas, and each new decision."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._chapter = ""
        self._last_seconds = float("-inf")
        self._said: dict[str, str] = {}

    def update(self, frame: Frame) -> None:
        """Write the changes, unless something was written very recently."""
        if frame.chapter.name != self._chapter:
            self._chapter = frame.chapter.name
            self._write(frame.observation, f"== {frame.chapter.name}: {frame.chapter.headline}")
        elif frame.observation.seconds - self._last_seconds < _EVERY_SECONDS:
            return
        self._last_seconds = frame.observation.seconds
        for subject, state, text in lines(frame.observation):
            if self._said.get(subject) != state:
                self._said[subject] = state
                self._write(frame.observation, text)

    def note(self, text: str) -> None:
        """Write a text at once."""
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing, as there is no terminal to release."""

    def _write(self, observation: Observation, text: str) -> None:
        self.note(f"{observation.seconds:4.0f} s  {text}")


def lines(observation: Observation) -> Iterator[tuple[str, str, str]]:
    """Yield a subject, the state whose change triggers a line, and the text of the line."""
    for model in observation.models:
        replicas = ", ".join(map(replicas_text, model.variants))
        yield model.model_id, replicas, f"{model.model_id} ({_clients(model)}): {replicas}"
        for variant in model.variants:
            decided = f"{variant.reason} {variant.bound_by} {variant.desired_replicas}"
            if variant.reason not in ("", "Steady"):
                yield variant.name, decided, f"  {variant.message}"
    for binding in observation.bindings:
        replicas = ", ".join(replicas_text(target) for target in binding.targets)
        yield binding.name, replicas, f"{binding.name} (by policy): {replicas}\n        {binding.message}"


def replicas_text(view: VariantView | BoundView) -> str:
    """Return `llama-8b-l40s 2->5`."""
    desired = "?" if view.desired_replicas is None else view.desired_replicas
    return f"{view.name} {view.current_replicas}->{desired}"


def _clients(model: ModelView) -> str:
    clients, target = model.clients, model.ttft_target_ms
    wait = "-" if clients.ttft_p90_ms is None else f"{clients.ttft_p90_ms:.0f} ms"
    goal = "" if target is None else f" of {target} ms"
    return f"{clients.requests_per_second:.0f} req/s, TTFT p90 {wait}{goal}"
