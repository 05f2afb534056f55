"""Describe a decision in one sentence with its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from controller.planning.load import Signal
from controller.planning.wording import count
from controller.policies.binding import Binding
from controller.policies.correcting import Step
from controller.policies.deciding import Decision
from controller.policies.observation import Activity
from controller.policies.recommending import Recommendation
from controller.policies.sharing import BindingDecision


def sentence(decision: Decision) -> str:
    """Return the number of replicas with all reasons."""
    begin = count(decision.replicas, "replica")
    if decision.replicas != decision.current_replicas:
        begin = f"from {decision.current_replicas} to {begin}"
    reasons = [*_asking(decision), *map(_limit_text, decision.steps)]
    return f"{begin}: {'; '.join(reasons)}" if reasons else begin


def binding_sentence(binding: Binding, decision: BindingDecision) -> str:
    """Return the sentence for a whole binding: with several targets, the replicas of each come first."""
    text = sentence(decision.whole)
    if binding.expansion_percent is None:
        return text
    pairs = zip(binding.targets, decision.replicas, strict=True)
    shares = ", ".join(f"{number} of {target.target.name}" for target, number in pairs)
    unit = "" if binding.is_alike else "in replicas of capacity 1: "
    return f"{shares}; together {unit}{text}"


def recommendation_text(asked: Recommendation) -> str:
    """Return the recommendation of one metric, with the quality of its data."""
    if asked.replicas is None or asked.total is None:
        return f"{asked.metric} is not known{_silence(asked)}"
    age_seconds = round(asked.age_seconds or 0)
    held = f", {age_seconds} s old" if asked.signal is Signal.HELD and age_seconds else ""
    return (
        f"{asked.metric} is {_number(asked.total)}{held}, {_number(asked.target)} per replica,"
        f" which asks for {asked.replicas}{_silence(asked)}"
    )


def _asking(decision: Decision) -> Iterator[str]:
    """Yield the metric that asks for the most replicas, and the unknown ones."""
    if decision.current_replicas == 0 and decision.activity is Activity.SEEN:
        yield "requests arrive or wait before the replicas, which asks for 1"
    known = [asked for asked in decision.recommendations if asked.replicas is not None]
    if known:
        yield recommendation_text(max(known, key=lambda asked: asked.needed or 0.0))
    yield from (recommendation_text(asked) for asked in decision.recommendations if asked.replicas is None)


def _limit_text(step: Step) -> str:
    return f"{step.after} by {step.limit} ({step.detail})"


def _silence(asked: Recommendation) -> str:
    if not asked.silent_pods:
        return ""
    return f" ({asked.silent_pods} of {asked.pods + asked.silent_pods} ready pods do not report it)"


def _number(value: float) -> str:
    return f"{value:.6g}"
