"""The demo's scenario: the nodes, the load of each model over time, and the chapters of the story.

The load is real: parts of the Azure traces of 2023, with the recorded requests, sizes and bursts. Only the
pace is chosen, so that an hour of ups and downs fits into minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat, takewhile
from pathlib import Path

from controller.config_planning import PlanningConfig
from controller.simulation.autoscaler import Behaviour, ScalingPace, ScalingRules
from controller.simulation.workload import Request
from hack.controlplane.nodes import KwokNode
from hack.demo.phases import Phase, requests

MANIFESTS = Path(__file__).parents[2] / "manifests" / "samples" / "demo"
SETTINGS = MANIFESTS / "settings.yaml"
MODELS = tuple(MANIFESTS / f"{name}.yaml" for name in ("llama-70b", "qwen-coder-32b", "llama-8b"))
BOUND = MANIFESTS / "mistral-7b.yaml"
"""A model that a policy scales. It has its own nodes, and does not affect the variants."""

MODEL = MANIFESTS / "chat.yaml"
"""The Model of the last chapter. It has its own nodes, too."""

REFUSED = MANIFESTS / "refused" / "mixed-shapes.yaml"
NAMESPACE = "demo"

# The pace: a start-up of 20 s stands for one of 120 s. Everything related is also a sixth of its value in
# a real cluster: the time between decisions (roughly), the time that a mix lasts, and the windows and periods
# of the HorizontalPodAutoscalers.
START_UP_SECONDS = 20.0
PLANNING = PlanningConfig(interval_seconds=3, standing_seconds=100, joint_bindings_namespaces=("demo",))
SYNC_SECONDS = 1.5
"""Sync period of the simulated autoscalers in seconds; that of the real ones is 2 s."""

DEFAULT_BEHAVIOUR = Behaviour(
    up=ScalingRules(
        window_seconds=0,
        paces=(
            ScalingPace(type="Percent", value=100, period_seconds=3),
            ScalingPace(type="Pods", value=4, period_seconds=3),
        ),
    ),
    down=ScalingRules(window_seconds=50, paces=(ScalingPace(type="Percent", value=100, period_seconds=3),)),
)
"""Kubernetes' default behavior of an autoscaler, at the demo's pace."""

_CONVERSATION = "azure-llm-2023-conv"
_CODE = "azure-llm-2023-code"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """A part of the story; `from_seconds` counts from the start of the load."""

    name: str
    from_seconds: float
    headline: str


RAMP_SECONDS = 60.0
"""Duration in seconds of the ramp in the premium model's surge."""

CHAPTERS = (
    Chapter(name="calm", from_seconds=0, headline="little load on every model"),
    Chapter(name="surge", from_seconds=30, headline="a surge on the freemium model"),
    Chapter(name="shortage", from_seconds=110, headline="the premium model surges too: not enough for all"),
    Chapter(name="relief", from_seconds=240, headline="both surges are over"),
)
END_SECONDS = 320.0
MODEL_CHAPTER = Chapter(
    name="model", from_seconds=END_SECONDS, headline="one Model expands to engines on two accelerators"
)
MODEL_LOAD_SECONDS = 15.0
"""Start of the Model's load, in seconds after its chapter begins."""

MODEL_SCALES_SECONDS = 60.0
"""Time in seconds within which the Model must scale, including the beginning of its load."""

DRAIN_SECONDS = 10.0
"""Time for the backlog of the premium model to drain, in seconds."""

EXCUSED_SECONDS = RAMP_SECONDS + PLANNING.interval_seconds + 2 + START_UP_SECONDS + DRAIN_SECONDS
"""Time in seconds after its surge begins during which the premium model may miss its targets. The peak of the
ramp needs a decision and a sync of the autoscaler; then the lower priority is preempted, engines start, and
the backlog drains."""


def chapter_at(seconds: float) -> Chapter:
    """Return the chapter at a time after the start of the load."""
    begun = (c for c in (*CHAPTERS, MODEL_CHAPTER) if c.from_seconds <= seconds)
    return max(begun, key=lambda c: c.from_seconds)


def model_nodes() -> Iterator[KwokNode]:
    """Yield the nodes of the Model: 4 T4 and 4 A30."""
    yield KwokNode(name="t4", accelerator="NVIDIA-T4", accelerator_count=4, accelerator_memory_gib=16)
    yield KwokNode(name="a30", accelerator="NVIDIA-A30", accelerator_count=4, accelerator_memory_gib=24)


def nodes() -> Iterator[KwokNode]:
    """Yield the nodes: 16 H100, 20 A100 and 12 L40S for the variants, 3 L4 and 4 A10 for the bound pair."""
    for number in range(2):
        yield KwokNode(name=f"h100-{number}", accelerator="NVIDIA-H100-80GB-HBM3", accelerator_count=8)
    for number in range(5):
        yield KwokNode(name=f"a100-{number}", accelerator="NVIDIA-A100-SXM4-80GB", accelerator_count=4)
    for number in range(6):
        yield KwokNode(
            name=f"l40s-{number}", accelerator="NVIDIA-L40S", accelerator_count=2, accelerator_memory_gib=48
        )
    yield KwokNode(name="l4", accelerator="NVIDIA-L4", accelerator_count=3, accelerator_memory_gib=24)
    yield KwokNode(name="a10", accelerator="NVIDIA-A10", accelerator_count=4, accelerator_memory_gib=24)


def load() -> dict[str, tuple[Phase, ...]]:
    """Return the load of each variant's model, phase by phase."""
    return {
        "meta/llama-3.1-70b": (
            *_ramp(at=60, seconds=30, speeds=(0.3, 0.5, 0.7)),
            _phase(_CONVERSATION, at=110, seconds=80, speed=0.8),
            *_ramp(at=1400, seconds=RAMP_SECONDS, speeds=(1.1, 1.5, 1.9, 2.3, 2.7, 3.1)),
            _phase(_CONVERSATION, at=1680, seconds=20, speed=3.4),
            _phase(_CONVERSATION, at=1830, seconds=50, speed=3.7),
            _phase(_CONVERSATION, at=2220, seconds=1000, speed=0.8),
        ),
        "qwen/qwen2.5-coder-32b": (_phase(_CODE, at=1080, seconds=400, speed=5, keep=0.08),),
        "meta/llama-3.1-8b": (
            *_ramp(at=100, seconds=30, speeds=(1, 1.7, 2.4)),
            *_ramp(at=230, seconds=80, speeds=(3, 4, 5, 6, 7, 8, 8.5)),
            _phase(_CONVERSATION, at=830, seconds=130, speed=9),
            _phase(_CONVERSATION, at=2220, seconds=1000, speed=2),
        ),
    }


def bound_load() -> dict[str, tuple[Phase, ...]]:
    """Return the load of the model that a policy scales, which rises while nothing else does."""
    return {
        "mistral/mistral-7b": (
            _phase(_CONVERSATION, at=100, seconds=40, speed=0.3),
            *_ramp(at=300, seconds=30, speeds=(0.8, 1.2, 1.6)),
            _phase(_CONVERSATION, at=400, seconds=110, speed=1.6),
            _phase(_CONVERSATION, at=1400, seconds=1000, speed=0.3),
        )
    }


def arrivals() -> dict[str, Iterator[Request]]:
    """Return the requests of each model from the start of the load; the last phase repeats forever."""
    return {
        model_id: requests(chain(phases, repeat(phases[-1])), start_us=0)
        for model_id, phases in (load() | bound_load()).items()
    }


def model_arrivals() -> dict[str, Iterator[Request]]:
    """Return the requests of the Model, which begin in its chapter."""
    phases = (
        *_ramp(at=300, seconds=15, speeds=(0.8, 1.2, 1.6)),
        _phase(_CONVERSATION, at=400, seconds=110, speed=1.6),
    )
    start_us = round((END_SECONDS + MODEL_LOAD_SECONDS) * 1e6)
    return {"chat": requests(chain(phases, repeat(phases[-1])), start_us=start_us)}


def requests_until_the_end() -> dict[str, list[Request]]:
    """Return the requests of each variant's model that arrive before the end."""
    end_us = round(END_SECONDS * 1e6)
    return {
        model_id: list(takewhile(lambda request: request.arrival_us < end_us, stream))
        for model_id, stream in arrivals().items()
        if model_id in load()
    }


def _ramp(*, at: float, seconds: float, speeds: tuple[float, ...]) -> Iterator[Phase]:
    """Yield consecutive phases of equal duration."""
    for speed in speeds:
        phase = _phase(_CONVERSATION, at=at, seconds=seconds / len(speeds), speed=speed)
        at = phase.to_seconds
        yield phase


def _phase(trace: str, *, at: float, seconds: float, speed: float, keep: float = 1.0) -> Phase:
    """Return a phase of the given duration in the demo, from the time `at` of a trace."""
    return Phase(trace=trace, from_seconds=at, to_seconds=at + seconds * speed, speed=speed, keep=keep)
