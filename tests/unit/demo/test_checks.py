"""The checks of the demo, on histories in which they hold and in which they fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.demo_history import answered, course, seen, variant

from hack.demo import checks
from hack.demo.observation import (
    BindingView,
    BoundView,
    DemoHistory,
    DemoObservation,
    ManifestRefusal,
    ProcessOutage,
)
from hack.demo.scenario import CHAPTERS, END_SECONDS

if TYPE_CHECKING:
    from hack.demo.observation import VariantView

START = {chapter.name: chapter.from_seconds for chapter in CHAPTERS}


def saying(view: VariantView, said: dict[str, object]) -> VariantView:
    """Return the view with other fields of its decision."""
    return replace(view, **said)  # type: ignore[arg-type] # tests name the fields


GIVES_WAY: dict[str, object] = {
    "reason": "Shortage",
    "bound_by": "Priority",
    "message": "granted 2: priority 1 has the rest",
}
Row = tuple[float, int, int, dict[str, object]]
WHOLE_STORY: tuple[Row, ...] = (
    (START["calm"], 1, 1, {}),
    (START["calm"] + 5, 1, 1, {}),
    (START["surge"] + 1, 1, 1, {}),
    (START["surge"] + 9, 1, 6, {}),
    (START["shortage"] + 1, 1, 6, {}),
    (START["shortage"] + 9, 5, 2, GIVES_WAY),
    (START["relief"] + 1, 5, 2, {}),
    (END_SECONDS - 1, 1, 1, {}),
)
"""Time, premium replicas, freemium replicas, and fields of the freemium decision."""


def story(rows: tuple[Row, ...] = WHOLE_STORY) -> DemoHistory:
    """Return a history of the rows in which all premium requests are served in time."""
    return DemoHistory(
        served=[answered()],
        observations=[
            seen(
                seconds,
                variant("big-h100", big, shape="legacy"),
                saying(variant("small-a100", small, shape="annotated"), said),
                variant("middle-h100", 1),
            )
            for seconds, big, small, said in rows
        ],
    )


def changed(seconds: float, **columns: object) -> DemoHistory:
    """Return the history of the whole scenario with one row changed."""
    names = ("seconds", "big", "small", "said")
    rows = [
        tuple({**dict(zip(names, row, strict=True)), **columns}.values()) if row[0] == seconds else row
        for row in WHOLE_STORY
    ]
    return story(tuple(rows))  # type: ignore[arg-type] # the columns keep their types


def test_all_checks_hold_for_the_whole_scenario_except_those_without_data() -> None:
    """The histories of the following tests differ from this one in one respect."""
    judged = [finding for finding in checks.findings(story()) if "Model" not in finding.name]

    assert [finding.name for finding in judged if not finding.holds] == [
        "an invalid manifest is refused",
        "a policy scales two different variants",
    ]


def test_checks_fail_for_an_empty_history() -> None:
    """Only the check on outages holds; a demo that stops early must not pass for lack of counterexamples."""
    holding = [finding.name for finding in checks.findings(DemoHistory()) if finding.holds]

    assert holding == ["a process that is down changes nothing"]


def test_the_check_of_the_surge_states_the_reaction_time() -> None:
    """Nine seconds after the surge began, there were more replicas than before."""
    finding = checks.surge_scales_up(story())

    assert finding.detail == "small: 1 -> 6 replicas, the first 9 s after the surge began"


@pytest.mark.parametrize(
    ("check", "history"),
    [
        pytest.param(
            checks.surge_scales_up,
            changed(START["surge"] + 9, small=1),
            id="no replicas are added in the surge",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, said={}),
            id="preempted without a stated reason",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, small=6),
            id="a decision to preempt without effect",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, big=1),
            id="the premium model does not grow",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            story(
                (
                    *WHOLE_STORY[:5],
                    (START["shortage"] + 9, 1, 2, GIVES_WAY),
                    (START["shortage"] + 85, 5, 2, {}),
                    *WHOLE_STORY[6:],
                )
            ),
            id="the premium model grows only long after the preemption",
        ),
        pytest.param(
            checks.relief_scales_down, changed(END_SECONDS - 1, big=5), id="the premium model stays large"
        ),
        pytest.param(
            checks.relief_scales_down, changed(END_SECONDS - 1, small=6), id="the freemium model stays large"
        ),
    ],
)
def test_each_check_fails_if_its_part_of_the_scenario_is_missing(check: object, history: DemoHistory) -> None:
    """The changed row is the one that the check depends on."""
    assert callable(check)

    assert not check(history).holds


LATE: tuple[Row, ...] = (
    *WHOLE_STORY[:3],
    (START["shortage"] - 1, 1, 3, {}),
    (START["shortage"] + 8, 5, 3, {}),
    (START["shortage"] + 30, 5, 8, {}),
    (START["relief"] - 10, 5, 8, GIVES_WAY | {"desired_replicas": 4}),
    (START["relief"] + 4, 5, 4, GIVES_WAY),
    (END_SECONDS - 1, 1, 1, {}),
)
"""A history on a slow machine: the freemium model grows in the shortage and is preempted later.

The premium model is not observed before it has grown, and the freemium model never has fewer replicas than
when the shortage began.
"""


def late(moment: float, **said: object) -> DemoHistory:
    """Return the late history with other fields of the decision at one time."""
    return story(tuple((s, b, n, d | said) if s == moment else (s, b, n, d) for s, b, n, d in LATE))


def test_preempted_replicas_may_be_removed_late() -> None:
    """The check compares them with the decided number, not with the replicas at one time."""
    finding = checks.lower_priority_gives_way(story(LATE))

    assert finding.holds
    assert finding.detail == "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest"


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(
            late(START["relief"] - 10, bound_by="Accelerators"), id="no higher priority has the accelerators"
        ),
        pytest.param(
            late(START["relief"] - 10, desired_replicas=6), id="the replicas differ from the decided number"
        ),
        pytest.param(story((*LATE[:-2], (START["relief"] + 65, 5, 4, {}), *LATE[-1:])), id="removed late"),
        pytest.param(
            story((*LATE[:-3], (START["relief"] + 1, 5, 8, GIVES_WAY | {"desired_replicas": 4}), *LATE[-2:])),
            id="decided only after the shortage",
        ),
    ],
)
def test_a_scale_down_for_another_reason_is_no_preemption(history: DemoHistory) -> None:
    """It is not sufficient that the model has fewer replicas at some time."""
    assert not checks.lower_priority_gives_way(history).holds


def shortage_of_two(*rows: tuple[VariantView, ...]) -> DemoHistory:
    """Return a shortage in which the premium model grows at once, with these freemium variants."""
    history = story(WHOLE_STORY[:4])
    for number, views in enumerate(rows):
        made = seen(START["shortage"] + 1 + number, variant("big-h100", 5), variant("small-a100", 0))
        big, small = made.models
        history.observations.append(replace(made, models=(big, replace(small, variants=views))))
    return history


def giving_way(name: str, replicas: int, *, desired: int | None = None) -> VariantView:
    """Return a variant whose decision is a preemption."""
    return saying(variant(name, replicas, desired=desired), GIVES_WAY)


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2), variant("small-l40s", 2)),
            "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest",
            id="its sibling loses more replicas for another reason",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), giving_way("small-l40s", 5, desired=2)),
            (giving_way("small-a100", 2), giving_way("small-l40s", 2)),
            "big +4 replicas, small -7 at once: granted 2: priority 1 has the rest",
            id="both are preempted",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2), variant("small-l40s", 8)),
            "big +4 replicas, small -1 at once: granted 2: priority 1 has the rest",
            id="its sibling gains replicas",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2),),
            "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest",
            id="its sibling is not observed any more",
        ),
    ],
)
def test_only_replicas_of_preempting_decisions_are_counted(
    before: tuple[VariantView, ...], after: tuple[VariantView, ...], detail: str
) -> None:
    """Replicas that a sibling loses for another reason do not count; those that it gains are subtracted."""
    finding = checks.lower_priority_gives_way(shortage_of_two(before, after))

    assert (finding.holds, finding.detail) == (True, detail)


@pytest.mark.parametrize("left", [(), (variant("small-l40s", 5),)])
def test_a_variant_that_is_not_observed_any_more_is_not_preempted(left: tuple[VariantView, ...]) -> None:
    """Its decision was observed before, but its replicas afterwards are unknown."""
    before = (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5))
    finding = checks.lower_priority_gives_way(shortage_of_two(before, left))

    assert not finding.holds
    assert finding.detail == "big +4 replicas; small did not follow its decisions"


@pytest.mark.parametrize("undecided", ["legacy", "current", "annotated", ""])
def test_objects_of_every_shape_must_have_decisions(undecided: str) -> None:
    """A variant without a decision is not planned for, whatever its shape."""
    shapes = ("legacy", "current", "annotated")
    variants = [
        variant(f"chat-{shape}", 1, shape=shape, desired_replicas=None if shape == undecided else 1)
        for shape in shapes
    ]
    history = DemoHistory(observations=[seen(0, *variants)])

    assert checks.every_shape_is_planned(history).holds is not bool(undecided)


INVALID = """The VariantAutoscaling "x" is invalid:
* spec.variantID: Invalid value: "a"
* spec.acceleratorCount: Invalid value: "eight"
* spec.variantCost: Invalid value: "cheap"
"""


@pytest.mark.parametrize(
    ("refusal", "holds"),
    [
        pytest.param(
            ManifestRefusal(manifest="x", exit_code=1, output=INVALID), True, id="rejected with all errors"
        ),
        pytest.param(ManifestRefusal(manifest="x", exit_code=0, output=INVALID), False, id="accepted"),
        pytest.param(
            ManifestRefusal(manifest="x", exit_code=1, output="\n".join(INVALID.splitlines()[:2])),
            False,
            id="rejected with the first error only",
        ),
        pytest.param(
            ManifestRefusal(manifest="x", exit_code=1, output="connection refused"),
            False,
            id="another failure",
        ),
    ],
)
def test_a_rejection_counts_only_with_its_errors(refusal: ManifestRefusal, *, holds: bool) -> None:
    """The check requires the exit code, Kubernetes' wording, and several errors at once."""
    assert checks.bad_manifest_is_refused(DemoHistory(refusals=[refusal])).holds is holds


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        pytest.param([(0, 1, 4), (5, 4, 4), (20, 4, 4)], True, id="applied in time"),
        pytest.param(
            [(0, 1, 4), (5, 1, 4), (11, 2, 4), (20, 2, 4)], False, id="a scale-up that is not completed"
        ),
        pytest.param([(0, 1, 4), (5, 1, 2), (20, 2, 2)], True, id="a withdrawn scale-up"),
        pytest.param(
            [(0, 1, 4), (5, 1, 6), (20, 2, 5)],
            False,
            id="a scale-up to changing numbers that does not happen",
        ),
        pytest.param(
            [(0, 4, 1), (60, 4, 1), (75, 1, 1), (99, 1, 1)], True, id="a scale-down after the window"
        ),
        pytest.param(
            [(0, 4, 1), (40, 4, 1), (75, 4, 1), (99, 4, 1)], False, id="a scale-down that does not happen"
        ),
        pytest.param(
            [(0, 4, 1), (40, 4, 3), (75, 4, 1), (99, 3, 1)],
            True,
            id="a scale-down to the maximum of the window",
        ),
        pytest.param([(0, 1, 1), (20, 1, 1)], False, id="no change at all"),
    ],
)
def test_lasting_decisions_must_be_applied(rows: list[tuple[float, int, int]], *, holds: bool) -> None:
    """A scale-up is due within seconds, a scale-down to the largest decided number after its window."""
    assert checks.autoscaler_follows(DemoHistory(observations=course(*rows))).holds is holds


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        pytest.param([(0, 3, 3), (10, 3, 3), (14, 3, 3)], True, id="no change"),
        pytest.param([(0, 3, 5), (10, 3, 5), (12, 5, 5)], True, id="an earlier decision is applied"),
        pytest.param([(0, 3, 3), (10, 3, 3), (12, 1, 3)], False, id="a change that was not decided"),
    ],
)
def test_replicas_must_not_change_during_an_outage_except_as_decided(
    rows: list[tuple[float, int, int]], *, holds: bool
) -> None:
    """Without the controller, replicas stay or reach the number decided before."""
    outage = ProcessOutage(component="controller", from_seconds=9, to_seconds=15)
    history = DemoHistory(observations=course(*rows), outages=[outage])

    assert checks.outages_change_nothing(history).holds is holds


def pair(*counts: tuple[int, int], is_placed: bool = True) -> DemoHistory:
    """Return a history of one binding with the replicas of its two targets."""
    rows = [
        BindingView(
            name="b",
            targets=tuple(
                BoundView(name=name, current_replicas=count, desired_replicas=count)
                for name, count in zip(("cheap", "dear"), found, strict=True)
            ),
            is_placed=is_placed,
            message="so many",
        )
        for found in counts
    ]
    return DemoHistory(
        observations=[
            DemoObservation(seconds=float(place), models=(), accelerators=(), bindings=(row,))
            for place, row in enumerate(rows)
        ]
    )


PAIRS = {
    "both targets scaled up and down": (pair((1, 0), (3, 2), (1, 0)), True),
    "one target only": (pair((1, 0), (3, 0), (1, 0)), False),
    "no scale-down": (pair((1, 0), (3, 2), (3, 2)), False),
    "replicas without a node": (pair((1, 0), (3, 2), (1, 0), is_placed=False), False),
}


@pytest.mark.parametrize(("history", "holds"), PAIRS.values(), ids=PAIRS.keys())
def test_a_policy_must_scale_both_targets_up_and_down(history: DemoHistory, *, holds: bool) -> None:
    """In the end, all replicas must have a node."""
    assert checks.unlike_pair_shares_a_load(history).holds is holds
