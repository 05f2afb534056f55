"""Choice of the setting of each other policy that Stowplan is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.decision_samples import played

from hack.bench.compared import OURS
from hack.bench.decisions.choosing import candidates, confirmed, is_dearer_for_good
from hack.bench.decisions.points import Played, Point, mean
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sweeping import FULL, QUICK, swept

OURS_FIRST = played(OURS, cost=700, missed=0.002)


@pytest.mark.parametrize(
    ("rivals", "chosen"),
    [
        pytest.param([("a", 900, 0.001), ("b", 800, 0.002)], "b", id="the cheapest is chosen"),
        pytest.param(
            [("a", 900, 0.003), ("b", 800, 0.0031)], "a", id="up to 0.1 percentage points more may be missed"
        ),
        pytest.param([("a", 600, 0.05)], None, id="a cheaper setting that misses more is not chosen"),
        pytest.param([("b", 800, 0.0), ("a", 800, 0.0)], "a", id="of equal costs, the first name is chosen"),
        pytest.param([], None, id="no settings"),
    ],
)
def test_the_baseline_is_the_cheapest_setting_that_misses_as_little(
    rivals: list[tuple[str, float, float]], chosen: str | None
) -> None:
    """There is one seed, so no further simulation is needed."""
    items = [played(name, cost=cost, missed=missed) for name, cost, missed in rivals]
    found = confirmed(items, [OURS_FIRST], lambda _: [])

    assert (found.policy if found else None) == chosen


def test_a_setting_that_is_good_for_one_seed_only_is_replaced_by_the_next() -> None:
    """The means over all seeds are compared and reported."""
    rivals = [played("lucky", cost=700), played("steady", cost=800)]
    later = {"lucky": [played("lucky", cost=700, missed=0.2)], "steady": [played("steady", cost=900)]}
    found = confirmed(rivals, [OURS_FIRST, OURS_FIRST], later.__getitem__)

    assert found == mean([rivals[1], *later["steady"]])
    assert found.cost == 850
    assert found.seeds == 2


@given(st.lists(st.tuples(st.floats(1, 1000), st.floats(0, 1)), max_size=8))
def test_no_setting_that_misses_as_little_is_cheaper_than_the_baseline(
    drawn: list[tuple[float, float]],
) -> None:
    """This holds for any costs and missed shares."""
    rivals = [played(str(n), cost=cost, missed=missed) for n, (cost, missed) in enumerate(drawn)]
    found = candidates(rivals, OURS_FIRST)
    fitting = [rival for rival in rivals if rival.missed <= OURS_FIRST.missed + 0.001]

    assert {one.policy for one in found} == {one.policy for one in fitting}
    assert not fitting or found[0].cost == min(one.cost for one in fitting)


@pytest.mark.parametrize(
    ("course", "ends"),
    [
        pytest.param([900, 950], False, id="one setting after the best"),
        pytest.param([900, 950, 990], True, id="two in a row cost more than the best, and rise"),
        pytest.param([1400, 950], False, id="cost still falls"),
        pytest.param([950, 990, 890], False, id="the last is cheaper than the best"),
        pytest.param([990], False, id="a single setting"),
    ],
)
def test_a_sweep_ends_after_two_settings_with_higher_and_rising_cost(
    course: list[float], *, ends: bool
) -> None:
    """From few to many replicas, cost rises, except at first if queues grow."""
    items = [played("x", cost=cost) for cost in course]

    assert is_dearer_for_good(items, played("best", cost=900)) is ends


@dataclass
class Arithmetic:
    """A stub that computes cost and misses: a given number of replicas per variant is sufficient."""

    ours: Played = OURS_FIRST
    enough: dict[str, int] = field(default_factory=lambda: {"h100": 8, "l40s": 30})
    asked: list[Point] = field(default_factory=list)

    def play(self, points: Sequence[Point]) -> list[Played]:
        """Return the results of the given points."""
        self.asked += points
        return [self._played(point) for point in points]

    def _played(self, point: Point) -> Played:
        if point.policy == OURS:
            return self.ours
        kind, _, rest = point.policy.partition(":")
        if not rest:
            return played(kind, cost=500)
        number, _, variant = rest.partition("@")
        price = {"h100": 100, "l40s": 32}[variant]
        replicas = int(number) if kind == "constant" else 320 // int(number)
        missed = 0.0 if replicas >= self.enough[variant] else 0.4
        return played(point.policy, cost=price * replicas, missed=missed)


def test_the_best_setting_of_each_policy_is_found() -> None:
    """At 40 requests per replica, 8 H100 replicas are sufficient; 30 L40S replicas would cost more."""
    found = swept(rows()["conv-x12"], FULL, Arithmetic().play)

    assert found.concurrency
    assert found.concurrency.policy == "concurrency:40@h100"
    assert found.concurrency.seeds == 3
    assert found.constant
    assert found.constant.policy == "constant:8@h100"
    assert [one.policy for one in found.fixed] == ["concurrency:16@h100", "concurrency:32@h100"]
    assert [one.policy for one in found.others] == ["queue:8@h100", "queue:2@h100", "wva-v1", "wva-v2"]
    assert found.clairvoyant


def test_the_cheapest_variant_is_chosen_whatever_the_order() -> None:
    """14 replicas on L40S cost less than 8 on H100."""
    found = swept(rows()["conv-x12"], FULL, Arithmetic(enough={"h100": 8, "l40s": 14}).play)

    assert found.constant
    assert found.constant.policy == "constant:14@l40s"


def test_rows_that_differ_only_for_stowplan_share_the_results_of_other_policies() -> None:
    """Stowplan is simulated with the row itself, other policies with the row that it refers to."""
    player = Arithmetic()
    swept(rows()["cheap-tried"], QUICK, player.play)

    assert {point.row for point in player.asked if point.policy == OURS} == {"cheap-tried"}
    assert {point.row for point in player.asked if point.policy != OURS} == {"cheap-known"}


def test_without_a_setting_that_misses_as_little_there_is_no_baseline() -> None:
    """The whole sweep has been simulated then."""
    player = Arithmetic(enough={"h100": 1000, "l40s": 1000})
    found = swept(rows()["code-x12"], QUICK, player.play)

    assert found.concurrency is None
    assert len({point for point in player.asked if point.policy.startswith("concurrency")}) == 8


def test_a_mean_is_over_every_seed() -> None:
    """The missed shares of each priority are averaged, too."""
    one = played("x", cost=100, missed=0.1, by_priority={1: 0.0, 10: 0.2})
    other = replace(one, cost=200, missed=0.3, by_priority={1: 0.2, 10: 0.4})
    found = mean([one, other])

    assert (found.cost, found.seeds) == (150, 2)
    assert found.missed == pytest.approx(0.2)
    assert found.by_priority == {1: pytest.approx(0.1), 10: pytest.approx(0.3)}
