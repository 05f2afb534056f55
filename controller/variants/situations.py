"""What to compare to tell whether decisions are followed, and the results. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json, as_object
from controller.bindings.status import BindingResult
from controller.observe.binding_conditions import BindingCondition
from controller.observe.decision_following import ActingFinding, Situation
from controller.observe.gather import GatherResult
from controller.planning.decision import Plan


def situations(gathered: GatherResult, plan: Plan, advised: Collection[Key]) -> Mapping[Key, Situation]:
    """Return what to compare for every decision that is to be followed."""
    variants = {variant.key: variant for variant in gathered.snapshot.variants}
    return {
        key: Situation(
            decided=decision.replicas,
            requested=variants[key].current_replicas,
            existing=len(variants[key].replicas),
            autoscalers=gathered.observed[key].autoscalers,
            start_seconds=variants[key].start_seconds,
            is_published=gathered.observed[key].claim.published_replicas is not None,
        )
        for decision in plan.decisions
        if (key := decision.key) not in advised
    }


def binding_situations(results: Sequence[BindingResult]) -> Mapping[tuple[Key, int], Situation]:
    """Return what to compare for every target of bindings that autoscalers should scale, by its position."""
    return {
        (result.case.key, place): Situation(
            decided=decided,
            requested=state.current_replicas,
            existing=None,
            autoscalers=state.autoscalers,
            is_published=_is_published(result.case.value),
        )
        for result in results
        if result.replicas is not None and not result.case.is_direct
        for place, (state, decided) in enumerate(zip(result.case.targets, result.replicas, strict=True))
    }


def with_acting(
    results: Sequence[BindingResult], findings: Mapping[tuple[Key, int], ActingFinding]
) -> list[BindingResult]:
    """Return results with whether their decisions are followed: by all targets, or why not."""
    by_binding: dict[Key, list[ActingFinding]] = {}
    for (key, _), finding in findings.items():
        by_binding.setdefault(key, []).append(finding)
    return [replace(result, acting=_joint(result, by_binding.get(result.case.key, ()))) for result in results]


def why_not_followed(result: BindingResult) -> Iterator[str]:
    """Yield the reasons why the decision on a binding is not followed; none for advice."""
    if result.acting is None:
        return
    is_resolved, reason, _ = result.case.findings[BindingCondition.TARGETS_RESOLVED]
    yield from () if is_resolved else (str(reason),)
    yield from () if result.acting[0] else (str(result.acting[1]),)


def _joint(result: BindingResult, findings: Sequence[ActingFinding]) -> ActingFinding | None:
    """Return one finding for all targets: the first problem's, with the messages of all that have one."""
    if not findings:
        return None
    wrong = [place for place, (is_followed, _, _) in enumerate(findings) if not is_followed]
    shown = wrong or range(len(findings))
    first = findings[shown[0]]
    targets = [state.bound.target for state in result.case.targets]
    text = "; ".join(
        f"{targets[place].kind} {targets[place].name!r}: {findings[place][2]}" for place in shown
    )
    return first[0], first[1], text


def _is_published(binding: Json) -> bool:
    return as_object(binding.get("status")).get("desiredReplicas") is not None
