"""What counts as shown: each check on histories in which it holds and in which it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.demo_history import answered, seen, variant

from hack.demo import checks
from hack.demo.history import History, Outage, Refusal
from hack.demo.observation import BindingView, BoundView, Observation
from hack.demo.scenario import CHAPTERS, END_SECONDS

if TYPE_CHECKING:
    from hack.demo.observation import VariantView

START = {chapter.name: chapter.from_seconds for chapter in CHAPTERS}


def saying(view: VariantView, said: dict[str, object]) -> VariantView:
    """Let a variant's decision say something."""
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
"""Moment, premium replicas, freemium replicas, and what the freemium decision says."""


def story(rows: tuple[Row, ...] = WHOLE_STORY) -> History:
    """Turn rows into a history in which premium is served at once."""
    return History(
        served=[answered()],
        observations=[
            seen(
                seconds, variant("big-h100", big, shape="legacy"), saying(variant("small-a100", small), said)
            )
            for seconds, big, small, said in rows
        ],
    )


def changed(seconds: float, **columns: object) -> History:
    """Tell the whole story with one row changed."""
    names = ("seconds", "big", "small", "said")
    rows = [
        tuple({**dict(zip(names, row, strict=True)), **columns}.values()) if row[0] == seconds else row
        for row in WHOLE_STORY
    ]
    return story(tuple(rows))  # type: ignore[arg-type] # the columns keep their types


def test_the_whole_story_holds_but_for_what_is_not_in_it() -> None:
    """The histories below differ from this one in a single thing."""
    judged = [finding for finding in checks.findings(story()) if "Model" not in finding.name]

    assert [finding.name for finding in judged if not finding.holds] == [
        "an invalid manifest is refused",
        "a policy scales two different variants",
    ]


def test_an_empty_history_shows_nothing() -> None:
    """A demo that was cut short must fail, not pass for want of counter-examples."""
    holding = [finding.name for finding in checks.findings(History()) if finding.holds]

    assert holding == ["a process that is down changes nothing"]


def test_the_surge_tells_its_reaction_time() -> None:
    """Nine seconds after the surge began there were more replicas than before it."""
    finding = checks.surge_scales_up(story())

    assert finding.detail == "small: 1 -> 6 replicas, the first 9 s after the surge began"


@pytest.mark.parametrize(
    ("check", "history"),
    [
        pytest.param(
            checks.surge_scales_up, changed(START["surge"] + 9, small=1), id="nothing grows in the surge"
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, said={}),
            id="it gives way but does not say why",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, small=6),
            id="it says so but does not give way",
        ),
        pytest.param(
            checks.lower_priority_gives_way,
            changed(START["shortage"] + 9, big=1),
            id="nobody takes what was given",
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
            id="premium grows only long after what was given is gone",
        ),
        pytest.param(
            checks.relief_scales_down, changed(END_SECONDS - 1, big=5), id="the premium model stays large"
        ),
        pytest.param(
            checks.relief_scales_down, changed(END_SECONDS - 1, small=6), id="the freemium model stays large"
        ),
    ],
)
def test_a_missing_part_of_the_story_is_found(check: object, history: History) -> None:
    """Each check fails for the very thing that it is there for."""
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
"""The same on a slow machine: who gives way still grew when it had to, and does so later.

Nothing is seen of the premium model before it has grown, and the freemium one never has fewer replicas than
when the shortage began.
"""


def late(moment: float, **said: object) -> History:
    """Tell the late story, with something else said at a moment."""
    return story(tuple((s, b, n, d | said) if s == moment else (s, b, n, d) for s, b, n, d in LATE))


def test_who_gives_way_may_take_its_time() -> None:
    """What counts is that it goes where it said, not how many replicas there were at one moment."""
    finding = checks.lower_priority_gives_way(story(LATE))

    assert finding.holds
    assert finding.detail == "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest"


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(
            late(START["relief"] - 10, bound_by="Accelerators"), id="nobody of a higher priority has them"
        ),
        pytest.param(late(START["relief"] - 10, desired_replicas=6), id="it goes elsewhere than it said"),
        pytest.param(
            story((*LATE[:-2], (START["relief"] + 65, 5, 4, {}), *LATE[-1:])), id="it goes long after"
        ),
        pytest.param(
            story((*LATE[:-3], (START["relief"] + 1, 5, 8, GIVES_WAY | {"desired_replicas": 4}), *LATE[-2:])),
            id="it says so only when the shortage is over",
        ),
    ],
)
def test_fewer_replicas_for_another_reason_are_no_giving_way(history: History) -> None:
    """That the model shrinks some time is not enough."""
    assert not checks.lower_priority_gives_way(history).holds


def shortage_of_two(*rows: tuple[VariantView, ...]) -> History:
    """Build a shortage in which the premium model grows at once, with any variants of the freemium model."""
    history = story(WHOLE_STORY[:4])
    for number, views in enumerate(rows):
        made = seen(START["shortage"] + 1 + number, variant("big-h100", 5), variant("small-a100", 0))
        big, small = made.models
        history.observations.append(replace(made, models=(big, replace(small, variants=views))))
    return history


def giving_way(name: str, replicas: int, *, desired: int | None = None) -> VariantView:
    """Build a variant whose decision gives way."""
    return saying(variant(name, replicas, desired=desired), GIVES_WAY)


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2), variant("small-l40s", 2)),
            "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest",
            id="its sibling loses more for another reason",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), giving_way("small-l40s", 5, desired=2)),
            (giving_way("small-a100", 2), giving_way("small-l40s", 2)),
            "big +4 replicas, small -7 at once: granted 2: priority 1 has the rest",
            id="both give way",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2), variant("small-l40s", 8)),
            "big +4 replicas, small -1 at once: granted 2: priority 1 has the rest",
            id="its sibling takes over some of it",
        ),
        pytest.param(
            (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5)),
            (giving_way("small-a100", 2),),
            "big +4 replicas, small -4 at once: granted 2: priority 1 has the rest",
            id="its sibling is not seen any more",
        ),
    ],
)
def test_only_what_the_decisions_gave_counts(
    before: tuple[VariantView, ...], after: tuple[VariantView, ...], detail: str
) -> None:
    """What a sibling loses for another reason was not given, and what it gains was not lost."""
    finding = checks.lower_priority_gives_way(shortage_of_two(before, after))

    assert (finding.holds, finding.detail) == (True, detail)


@pytest.mark.parametrize("left", [(), (variant("small-l40s", 5),)])
def test_a_variant_that_is_not_seen_any_more_gave_nothing(left: tuple[VariantView, ...]) -> None:
    """An observation may list nothing of a model that a decision has just been seen of."""
    before = (giving_way("small-a100", 6, desired=2), variant("small-l40s", 5))
    finding = checks.lower_priority_gives_way(shortage_of_two(before, left))

    assert not finding.holds
    assert finding.detail == "big +4 replicas; small did not follow its decisions"


def test_both_shapes_must_have_decisions() -> None:
    """An object that nobody decides on is not planned for, whatever its shape."""
    undecided = variant("big-h100", 1, shape="legacy", desired_replicas=None)
    history = History(observations=[seen(0, undecided, variant("small-a100", 1))])

    assert not checks.both_shapes_are_planned_for(history).holds


INVALID = """The VariantAutoscaling "x" is invalid:
* spec.variantID: Invalid value: "a"
* spec.acceleratorCount: Invalid value: "eight"
* spec.variantCost: Invalid value: "cheap"
"""


@pytest.mark.parametrize(
    ("refusal", "holds"),
    [
        pytest.param(Refusal(manifest="x", exit_code=1, output=INVALID), True, id="refused with all errors"),
        pytest.param(Refusal(manifest="x", exit_code=0, output=INVALID), False, id="taken"),
        pytest.param(
            Refusal(manifest="x", exit_code=1, output="\n".join(INVALID.splitlines()[:2])),
            False,
            id="refused with the first error only",
        ),
        pytest.param(
            Refusal(manifest="x", exit_code=1, output="connection refused"), False, id="refused by accident"
        ),
    ],
)
def test_a_refusal_counts_only_with_its_errors(refusal: Refusal, *, holds: bool) -> None:
    """Exit code, Kubernetes' wording, and several errors at once."""
    assert checks.bad_manifest_is_refused(History(refusals=[refusal])).holds is holds


def followed(*rows: tuple[float, int, int]) -> bool:
    """Judge moments with current and desired replicas of one variant."""
    history = History(
        observations=[
            seen(seconds, variant("big-h100", current, desired=desired), variant("small-a100", 1))
            for seconds, current, desired in rows
        ]
    )
    return checks.autoscaler_follows(history).holds


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        pytest.param([(0, 1, 4), (5, 4, 4), (20, 4, 4)], True, id="carried out in time"),
        pytest.param(
            [(0, 1, 4), (5, 1, 4), (11, 2, 4), (20, 2, 4)], False, id="a rise that is left half-way"
        ),
        pytest.param([(0, 1, 4), (5, 1, 2), (20, 2, 2)], True, id="a rise that did not stand"),
        pytest.param(
            [(0, 1, 4), (5, 1, 6), (20, 2, 5)], False, id="a rise to ever other numbers that never comes"
        ),
        pytest.param([(0, 4, 1), (60, 4, 1), (75, 1, 1), (99, 1, 1)], True, id="a fall after its window"),
        pytest.param([(0, 4, 1), (40, 4, 1), (75, 4, 1), (99, 4, 1)], False, id="a fall that never comes"),
        pytest.param(
            [(0, 4, 1), (40, 4, 3), (75, 4, 1), (99, 3, 1)], True, id="a fall to the largest number"
        ),
        pytest.param([(0, 1, 1), (20, 1, 1)], False, id="nothing ever happened"),
    ],
)
def test_standing_decisions_must_be_carried_out(rows: list[tuple[float, int, int]], *, holds: bool) -> None:
    """To the least decision within seconds, to the largest after the scale-down window."""
    assert followed(*rows) is holds


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        pytest.param([(0, 3, 3), (10, 3, 3), (14, 3, 3)], True, id="nothing moves"),
        pytest.param([(0, 3, 5), (10, 3, 5), (12, 5, 5)], True, id="what was decided before is carried out"),
        pytest.param([(0, 3, 3), (10, 3, 3), (12, 1, 3)], False, id="replicas go where nobody decided"),
    ],
)
def test_an_outage_moves_nothing_by_itself(rows: list[tuple[float, int, int]], *, holds: bool) -> None:
    """While the controller is away, replica counts stay, or go where it had wanted them."""
    history = History(
        observations=[
            seen(seconds, variant("big-h100", current, desired=desired), variant("small-a100", 1))
            for seconds, current, desired in rows
        ],
        outages=[Outage(component="controller", from_seconds=9, to_seconds=15)],
    )

    assert checks.outages_change_nothing(history).holds is holds


def pair(*counts: tuple[int, int], is_placed: bool = True) -> History:
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
    return History(
        observations=[
            Observation(seconds=float(place), models=(), accelerators=(), bindings=(row,))
            for place, row in enumerate(rows)
        ]
    )


PAIRS = {
    "up on both and down again": (pair((1, 0), (3, 2), (1, 0)), True),
    "only one of them": (pair((1, 0), (3, 0), (1, 0)), False),
    "not down again": (pair((1, 0), (3, 2), (3, 2)), False),
    "still without room": (pair((1, 0), (3, 2), (1, 0), is_placed=False), False),
    "never seen": (History(), False),
}


@pytest.mark.parametrize(("history", "holds"), PAIRS.values(), ids=PAIRS.keys())
def test_an_unlike_pair_must_be_scaled_both_ways(history: History, *, holds: bool) -> None:
    """What a policy scales is part of the story."""
    assert checks.unlike_pair_shares_a_load(history).holds is holds
