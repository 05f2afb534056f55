"""The bounds of a VariantAutoscaling, beside those of its autoscaler."""

from __future__ import annotations

import pytest
from support.gathering import gathered, placed
from support.manifests import autoscaler, variant

from apiserver.schema.json import Json


@pytest.mark.parametrize(
    ("own", "scaler", "want", "told"),
    [
        pytest.param({}, (1, 7), (1, 7), "", id="none of its own"),
        pytest.param({"minReplicas": 1, "maxReplicas": 7}, (1, 7), (1, 7), "", id="the same"),
        pytest.param({"maxReplicas": 4}, (1, 7), (1, 4), "maximum 4", id="a lower maximum"),
        pytest.param({"maxReplicas": 9}, (1, 7), (1, 7), "maximum 7", id="a higher maximum"),
        pytest.param({"minReplicas": 2}, (1, 7), (2, 7), "minimum 2", id="a higher minimum"),
        pytest.param(
            {"minReplicas": 2, "maxReplicas": 4}, (3, 9), (3, 4), "minimum 3 and maximum 4", id="both"
        ),
        pytest.param({"minReplicas": 8}, (1, 7), (7, 7), "minimum 7", id="a minimum above the maximum"),
        pytest.param({"maxReplicas": 2}, (4, 7), (2, 2), "maximum 2", id="a maximum below the minimum"),
        pytest.param({"minReplicas": 2, "maxReplicas": 4}, None, (2, 4), "", id="without an autoscaler"),
    ],
)
def test_of_the_bounds_of_object_and_autoscaler_the_narrower_apply(
    own: Json, scaler: tuple[int, int] | None, want: tuple[int, int], told: str
) -> None:
    """The condition of the target says so once."""
    scalers = (placed(autoscaler("chat", least=scaler[0], most=scaler[1])),) if scaler else ()
    found = gathered(placed(variant("chat", **own)), autoscalers=scalers)

    (planned,) = found.snapshot.variants
    assert (planned.min_replicas, planned.max_replicas) == want
    assert found.observed["ns", "chat"].narrowing.endswith(told)
    assert bool(found.observed["ns", "chat"].narrowing) is bool(told)


@pytest.mark.parametrize(("least", "may"), [(None, False), (0, True), (1, False)])
def test_a_minimum_of_zero_allows_scale_to_zero(least: int | None, *, may: bool) -> None:
    """It does so for one variant, while the setting for all forbids it; the grace period applies."""
    found = gathered(placed(variant("chat", minReplicas=least)))

    assert found.snapshot.variants[0].may_scale_to_zero is may
    assert bool(found.snapshot.models) is may
