"""The checks of the demo, as pure functions of its history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from hack.demo.model_story import ADAPTER, LOST, MODEL
from hack.demo.observation import DemoHistory, ModelView, VariantView, model_view
from hack.demo.scenario import CHAPTERS, END_SECONDS, EXCUSED_SECONDS

UP_SECONDS = 15.0
"""Replicas must not be below the smallest decision of this period, in seconds."""

DOWN_SECONDS = 80.0
"""Replicas must not exceed the largest decision of this period, in seconds; it is long for slow machines."""


def unfollowed_times(views: Sequence[tuple[float, VariantView]]) -> Iterator[float]:
    """Yield the times at which decisions were old enough but not applied."""
    for index, (seconds, view) in enumerate(views):
        least = _decisions_since(views[: index + 1], seconds - UP_SECONDS)
        most = _decisions_since(views[: index + 1], seconds - DOWN_SECONDS)
        if (least and view.current_replicas < min(least)) or (most and view.current_replicas > max(most)):
            yield seconds


def _decisions_since(views: Sequence[tuple[float, VariantView]], since_seconds: float) -> list[int]:
    """Return the decisions since a time; empty unless there was one all the time."""
    if views[0][0] > since_seconds:
        return []
    decided = [view.desired_replicas for moment, view in views if moment >= since_seconds]
    known = [replicas for replicas in decided if replicas is not None]
    return known if len(known) == len(decided) else []


CARRIED_OUT_SECONDS = 70.0
"""Time in seconds within which replicas follow a decision; it is long for slow machines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retreat:
    """Replicas that a model lost because its variants were preempted."""

    seconds: float
    """When the loss was observed."""

    replicas: int
    """The number that those variants lost, at most that of the whole model."""

    message: str
    """The most recent message of one of the decisions."""


def gives_way(variant: VariantView) -> bool:
    """Tell whether a variant's decision says that a higher priority takes what it needs."""
    return variant.reason == "Shortage" and variant.bound_by == "Priority" and bool(variant.message)


def retreats(
    history: DemoHistory, model_id: str, *, from_seconds: float, to_seconds: float
) -> Iterator[Retreat]:
    """Yield the losses of a model in [from, to) by variants that shrink to decisions in which they gave way.

    The number of replicas at any one time does not matter: they may arrive late, and leave more than once.
    The loss of a variant that is not observed before and after is unknown.
    """
    decided: list[tuple[float, VariantView]] = []
    for earlier, later in pairwise(history.observations):
        before, after = model_view(earlier, model_id), model_view(later, model_id)
        if before is None or after is None:
            continue
        if from_seconds <= later.seconds < to_seconds:
            decided += [(later.seconds, variant) for variant in after.variants if gives_way(variant)]
        since = later.seconds - CARRIED_OUT_SECONDS
        left = {variant.name: variant.current_replicas for variant in after.variants}
        lost = {v.name: v.current_replicas - left[v.name] for v in before.variants if v.name in left}
        reasons = {
            variant.name: variant.message
            for seconds, variant in decided
            if seconds >= since
            and lost.get(variant.name, 0) > 0
            and variant.desired_replicas == left[variant.name]
        }
        replicas = min(sum(lost.values()), sum(lost[name] for name in reasons))
        if replicas > 0:
            yield Retreat(seconds=later.seconds, replicas=replicas, message=[*reasons.values()][-1])


_FEWEST_ERRORS = 3
_LEAST_IN_TIME = 0.9
_LEAST_OF_ALL = 0.8

MOST_REVERSALS = 2 * len(CHAPTERS) + 1
"""For one variant: each chapter may turn it twice, once to follow it and once to correct an overshoot, and
the shortage once more, to give way to another model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckFinding:
    """The result of one check, with its evidence."""

    name: str
    holds: bool
    detail: str


def findings(history: DemoHistory) -> list[CheckFinding]:
    """Return the results of all checks."""
    return [check(history) for check in CHECKS]


def every_shape_is_planned(history: DemoHistory) -> CheckFinding:
    """Check that variants in the legacy and the current shape, and annotated autoscalers, have decisions."""
    last = history.observations[-1].variants if history.observations else ()
    decided = [variant.shape for variant in last if variant.desired_replicas is not None]
    numbers = {shape: decided.count(shape) for shape in ("legacy", "current", "annotated")}
    listed = ", ".join(f"{number} {shape}" for shape, number in numbers.items())
    return CheckFinding(
        name="objects of every shape are planned",
        holds=all(numbers.values()) and len(decided) == len(last),
        detail=f"{listed}, of {len(last)}",
    )


def bad_manifest_is_refused(history: DemoHistory) -> CheckFinding:
    """Check that an invalid manifest was rejected, with all of its errors at once."""
    for refusal in history.refusals:
        errors = re.findall(r"spec\.[\w.\[\]]+: \w+", refusal.output)
        if refusal.exit_code and " is invalid" in refusal.output and len(errors) >= _FEWEST_ERRORS:
            detail = f"{refusal.manifest}: {len(errors)} errors at once"
            return CheckFinding(name="an invalid manifest is refused", holds=True, detail=detail)
    answers = "; ".join(f"exit code {r.exit_code}: {r.output.strip()[:200]}" for r in history.refusals)
    return CheckFinding(
        name="an invalid manifest is refused", holds=False, detail=answers or "none was tried"
    )


def surge_scales_up(history: DemoHistory) -> CheckFinding:
    """Check that the model with the surge gets more replicas, and report how soon."""
    calm, surge = _chapter(history, "calm"), _chapter(history, "surge")
    name = "a surge scales up"
    if not calm or not surge:
        return CheckFinding(name=name, holds=False, detail="the surge was not reached")
    before = calm[-1].current_replicas
    peak = max(model.current_replicas for model in surge)
    begin = next(chapter.from_seconds for chapter in CHAPTERS if chapter.name == "surge")
    rises = (
        o.seconds - begin
        for o in history.between(begin, END_SECONDS)
        if (model := model_view(o, calm[0].model_id)) and model.current_replicas > before
    )
    first = next(rises, None)
    when = f", the first {first:.0f} s after the surge began" if first is not None else ""
    detail = f"{calm[0].model_id}: {before} -> {peak} replicas{when}"
    return CheckFinding(name=name, holds=peak > before, detail=detail)


def lower_priority_gives_way(history: DemoHistory) -> CheckFinding:
    """Check that freemium is preempted in the shortage and reports it, and premium has grown by then.

    Freemium's replicas may be removed long after premium has grown, but not much before. The check does not
    require that premium uses the same accelerators.
    """
    name = "in a shortage, the lower priority is preempted"
    premium, freemium = _chapter(history, "shortage", index=0), _chapter(history, "shortage")
    if not premium or not freemium:
        return CheckFinding(name=name, holds=False, detail="the shortage was not reached")
    begin, end = _span("shortage")
    given = [*retreats(history, freemium[0].model_id, from_seconds=begin, to_seconds=end)]
    if not given:
        detail = f"{premium[0].model_id} {_largest_increase(history, end):+d} replicas"
        has_given_way = any(gives_way(v) for model in freemium for v in model.variants)
        why = (
            "did not follow its decisions"
            if has_given_way
            else "has no decision that reduces its replicas for the higher priority"
        )
        return CheckFinding(name=name, holds=False, detail=f"{detail}; {freemium[0].model_id} {why}")
    increases = [
        (_largest_increase(history, min(end, one.seconds + CARRIED_OUT_SECONDS)), one) for one in given
    ]
    grown, most = max(increases, key=lambda pair: (pair[0] > 0, pair[1].replicas))
    return CheckFinding(
        name=name,
        holds=grown > 0,
        detail=f"{premium[0].model_id} {grown:+d} replicas, "
        f"{freemium[0].model_id} {-most.replicas:+d} at once: {most.message}",
    )


def premium_is_served_in_time(history: DemoHistory) -> CheckFinding:
    """Check that 90 % of premium's first tokens are in time, before its surge and once that is possible.

    The surge rises faster than engines start; including the time in between, 80 % must be in time.
    """
    name = "the premium model is served in time, except while engines start"
    begin, _ = _span("shortage")
    if not history.served:
        return CheckFinding(name=name, holds=False, detail="the end was not reached")
    details, holds = [], True
    stretches = (
        (0, begin, _LEAST_IN_TIME),
        (begin + EXCUSED_SECONDS, END_SECONDS, _LEAST_IN_TIME),
        (0, END_SECONDS, _LEAST_OF_ALL),
    )
    for from_seconds, to_seconds, least in stretches:
        in_time, count = history.served[0].first_tokens(from_seconds, to_seconds)
        details.append(f"{from_seconds:.0f} to {to_seconds:.0f} s: {in_time} of {count} first tokens in time")
        holds = holds and count > 0 and in_time >= least * count
    return CheckFinding(name=name, holds=holds, detail=", ".join(details))


def nobody_flaps(history: DemoHistory) -> CheckFinding:
    """Check that no variant's replicas change direction more often than the story does."""
    counted = history.reversals()
    flapping = [f"{name} {count} times" for name, count in counted.items() if count > MOST_REVERSALS]
    most = max(counted.values(), default=0)
    return CheckFinding(
        name="no variant oscillates",
        holds=bool(counted) and not flapping,
        detail=", ".join(flapping)
        or f"at most {most} changes of direction of a variant, {MOST_REVERSALS} are allowed",
    )


def relief_scales_down(history: DemoHistory) -> CheckFinding:
    """Check that after the surges both models end with fewer replicas than at their peak."""
    name = "after the surges it scales down"
    details, holds = [], True
    for index in (0, -1):
        busy, relief = _chapter(history, "shortage", index=index), _chapter(history, "relief", index=index)
        if not busy or not relief:
            return CheckFinding(name=name, holds=False, detail="the relief was not reached")
        peak, last = max(model.current_replicas for model in busy), relief[-1].current_replicas
        details.append(f"{busy[0].model_id}: {peak} -> {last} replicas")
        holds = holds and last < peak
    return CheckFinding(name=name, holds=holds, detail=", ".join(details))


def autoscaler_follows(history: DemoHistory) -> CheckFinding:
    """Check that the HorizontalPodAutoscaler applies each decision that is stable for a while."""
    followed, missed = 0, []
    for name in history.variant_names():
        views = list(history.of_variant(name))
        followed += sum(a.current_replicas != b.current_replicas for (_, a), (_, b) in pairwise(views))
        missed += [f"{name} at {seconds:.0f} s" for seconds in unfollowed_times(views)]
    return CheckFinding(
        name="the HorizontalPodAutoscaler follows the metric",
        holds=followed > 0 and not missed,
        detail=f"{followed} changes of replicas"
        + (f"; not followed: {', '.join(missed[:5])}" if missed else ""),
    )


def unlike_pair_shares_a_load(history: DemoHistory) -> CheckFinding:
    """Check that a policy scales its two targets up together and down again, within their nodes."""
    name = "a policy scales two different variants"
    seen = [view for o in history.observations for view in o.bindings[:1] if len(view.targets) > 1]
    if not seen:
        return CheckFinding(name=name, holds=False, detail="no binding of several targets was decided on")
    peak = max(seen, key=lambda view: sum(target.current_replicas for target in view.targets))
    most, last = ([target.current_replicas for target in view.targets] for view in (peak, seen[-1]))
    ways = zip(peak.targets, most, last, strict=True)
    changes = ", ".join(f"{target.name} {high} -> {low}" for target, high, low in ways)
    return CheckFinding(
        name=name,
        holds=all(most) and sum(last) < sum(most) and all(view.is_placed for view in seen[-1:]),
        detail=f"{changes}; at its peak: {peak.message}",
    )


def outages_change_nothing(history: DemoHistory) -> CheckFinding:
    """Check that during an outage of one of our processes, replicas changed only to decided numbers."""
    wrong = [
        f"{name}: {before} -> {after} while {outage.component} was down"
        for outage in history.outages
        for name, before, after in _undecided_changes(history, outage.from_seconds, outage.to_seconds)
    ]
    away = ", ".join(f"{o.component} {o.to_seconds - o.from_seconds:.0f} s" for o in history.outages)
    return CheckFinding(
        name="a process that is down changes nothing",
        holds=not wrong,
        detail="; ".join(wrong) or (f"down: {away}" if away else "none was down"),
    )


def model_becomes_engines(history: DemoHistory) -> CheckFinding:
    """Check that all backends of a Model serve, and answer for it and for its adapter."""
    story, name = history.model, "a Model expands to engines that serve it and its adapter"
    if story.active_seconds is None:
        return CheckFinding(name=name, holds=False, detail=f"{MODEL} did not become active")
    answers = [f"{model}: {', '.join(servers) or 'nobody'}" for model, servers in story.answered.items()]
    holds = all(len(servers) > 1 for servers in story.answered.values()) and ADAPTER in story.answered
    detail = f"active after {story.active_seconds:.0f} s; answered by {'; '.join(answers)}"
    return CheckFinding(name=name, holds=holds, detail=detail)


def model_scales(history: DemoHistory) -> CheckFinding:
    """Check that a Model has more engines once it has load."""
    counts = history.model.replicas
    detail = f"{MODEL}: {counts[0]} -> {max(counts)} replicas" if counts else f"{MODEL} was not seen"
    return CheckFinding(name="a Model scales", holds=bool(counts) and max(counts) > counts[0], detail=detail)


def backend_leaves_without_a_gap(history: DemoHistory) -> CheckFinding:
    """Check that requests were always routed to engines while a backend was removed, and are answered."""
    story, name = history.model, "a backend of a Model is removed without interruption"
    if story.lost_seconds is None:
        return CheckFinding(name=name, holds=False, detail=f"{LOST} still exists")
    gaps = f"; the route pointed to {', '.join(story.gaps)} without an engine" if story.gaps else ""
    detail = (
        f"gone after {story.lost_seconds:.0f} s, {ADAPTER} is answered by {', '.join(story.answered_after)}"
    )
    holds = not story.gaps and list(story.answered_after) not in ([], [LOST])
    return CheckFinding(name=name, holds=holds, detail=f"{detail}{gaps}")


CHECKS = (
    every_shape_is_planned,
    bad_manifest_is_refused,
    autoscaler_follows,
    surge_scales_up,
    lower_priority_gives_way,
    premium_is_served_in_time,
    relief_scales_down,
    nobody_flaps,
    unlike_pair_shares_a_load,
    outages_change_nothing,
    model_becomes_engines,
    model_scales,
    backend_leaves_without_a_gap,
)
"""In the order of the summary."""


def _span(name: str) -> tuple[float, float]:
    """Return the begin and end of a chapter, in seconds."""
    ends = [*(chapter.from_seconds for chapter in CHAPTERS[1:]), END_SECONDS]
    return next((c.from_seconds, e) for c, e in zip(CHAPTERS, ends, strict=True) if c.name == name)


def _chapter(history: DemoHistory, name: str, *, index: int = -1) -> list[ModelView]:
    """Return the views of one model in one chapter: the last by priority, or the first."""
    return [o.models[index] for o in history.between(*_span(name)) if o.models]


def _largest_increase(history: DemoHistory, to_seconds: float) -> int:
    """Return the largest increase of premium's replicas from the end of the surge until a time."""
    begin, _ = _span("shortage")
    during = [o.models[0] for o in history.between(begin, to_seconds) if o.models]
    counts = [model.current_replicas for model in (*_chapter(history, "surge", index=0)[-1:], *during)]
    rises = (count - least for count, least in zip(counts, accumulate(counts, min), strict=True))
    return max(rises, default=0)


def _undecided_changes(
    history: DemoHistory, from_seconds: float, to_seconds: float
) -> Iterable[tuple[str, int, int]]:
    for name in history.variant_names():
        views = list(history.of_variant(name))
        for (_, before), (seconds, after) in pairwise(views):
            if not from_seconds <= seconds <= to_seconds or before.current_replicas == after.current_replicas:
                continue
            since = seconds - DOWN_SECONDS
            decided = {v.desired_replicas for moment, v in views if since <= moment <= seconds}
            if after.current_replicas not in decided:
                yield name, before.current_replicas, after.current_replicas
