"""What the demo plays: the nodes, the load of each model over time, and the chapters of the story.

The load is real: pieces of the Azure traces of 2023, request by request, with the sizes and the bursts that
were recorded. Only the pace is chosen, so that an hour of ups and downs fits into minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from controller.simulation.replay import Phase, requests
from hack.controlplane.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.simulation.request import Request

MANIFESTS = Path(__file__).parents[2] / "manifests" / "samples" / "demo"
SETTINGS = MANIFESTS / "settings.yaml"
MODELS = tuple(MANIFESTS / f"{name}.yaml" for name in ("llama-70b", "qwen-coder-32b", "llama-8b"))
REFUSED = MANIFESTS / "refused" / "mixed-shapes.yaml"
NAMESPACE = "demo"

_CONVERSATION = "azure-llm-2023-conv"
_CODE = "azure-llm-2023-code"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """A part of the story; it begins so many seconds after the load does."""

    name: str
    from_seconds: float
    headline: str


CHAPTERS = (
    Chapter(name="calm", from_seconds=0, headline="little load on every model"),
    Chapter(name="surge", from_seconds=40, headline="a surge on the freemium model"),
    Chapter(name="shortage", from_seconds=100, headline="the premium model surges too: not enough for all"),
    Chapter(name="relief", from_seconds=165, headline="both surges are over"),
)
END_SECONDS = 225.0


def chapter_at(seconds: float) -> Chapter:
    """Return the chapter of a moment after the start of the load."""
    return max((c for c in CHAPTERS if c.from_seconds <= seconds), key=lambda c: c.from_seconds)


def nodes() -> Iterator[Node]:
    """Yield a dozen nodes with three types of accelerators: 16 H100, 16 A100 and 12 L40S."""
    for number in range(2):
        yield Node(name=f"h100-{number}", accelerator="NVIDIA-H100-80GB-HBM3", accelerator_count=8)
    for number in range(4):
        yield Node(name=f"a100-{number}", accelerator="NVIDIA-A100-SXM4-80GB", accelerator_count=4)
    for number in range(6):
        yield Node(
            name=f"l40s-{number}", accelerator="NVIDIA-L40S", accelerator_count=2, accelerator_memory_gib=48
        )


def load() -> dict[str, tuple[Phase, ...]]:
    """Return the load of each model, phase by phase."""
    return {
        "meta/llama-3.1-70b": (
            _phase(_CONVERSATION, at=60, seconds=100, speed=0.2),
            _phase(_CONVERSATION, at=1500, seconds=65, speed=2.2),
            _phase(_CONVERSATION, at=2100, seconds=1800, speed=0.2),
        ),
        "qwen/qwen2.5-coder-32b": (_phase(_CODE, at=1360, seconds=1800, speed=0.6, keep=0.15),),
        "meta/llama-3.1-8b": (
            _phase(_CONVERSATION, at=100, seconds=40, speed=0.8),
            _phase(_CONVERSATION, at=1380, seconds=125, speed=4),
            _phase(_CONVERSATION, at=1900, seconds=1200, speed=0.8),
        ),
    }


def arrivals() -> dict[str, Iterator[Request]]:
    """Return the requests of each model from the start of the load on; the last phase repeats without end."""
    return {
        model_id: requests(chain(phases, repeat(phases[-1])), start_us=0)
        for model_id, phases in load().items()
    }


def _phase(trace: str, *, at: float, seconds: float, speed: float, keep: float = 1.0) -> Phase:
    """Return so many seconds of the demo, from the moment `at` of a trace on."""
    return Phase(trace=trace, from_seconds=at, to_seconds=at + seconds * speed, speed=speed, keep=keep)
