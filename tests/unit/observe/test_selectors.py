"""Label selectors compared with a reference that evaluates each condition separately."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.core.selecting import selected_keys, selects
from apiserver.schema.json import Json

KEYS = st.sampled_from(["app", "tier", "zone"])
VALUES = st.sampled_from(["", "a", "b"])
LABELS = st.dictionaries(KEYS, VALUES)
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(VALUES, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=3)}
)


def _reference(selector: Json, labels: dict[str, str]) -> bool:
    """Return the result by sets: for each key, the values (or absence) that every condition allows."""
    for key in ("app", "tier", "zone"):
        allowed: set[str | None] = {None, "", "a", "b"}
        if key in selector.get("matchLabels", {}):
            allowed &= {selector["matchLabels"][key]}
        for item in selector.get("matchExpressions", []):
            if item["key"] == key:
                allowed &= _left_by(item)
        if labels.get(key) not in allowed:
            return False
    return True


def _left_by(item: Json) -> set[str | None]:
    everything: set[str | None] = {None, "", "a", "b"}
    return {
        "In": set(item.get("values", [])),
        "NotIn": everything - set(item.get("values", [])),
        "Exists": everything - {None},
        "DoesNotExist": {None},
    }[item["operator"]]


@given(SELECTORS, LABELS)
def test_a_selector_matches_if_every_condition_holds(selector: Json, labels: dict[str, str]) -> None:
    """An empty selector selects everything, and an absent label satisfies NotIn and DoesNotExist."""
    assert selects(selector, labels) == _reference(selector, labels)


@given(SELECTORS, LABELS)
def test_only_labels_that_a_selector_names_affect_its_result(selector: Json, labels: dict[str, str]) -> None:
    """Removing other labels does not change it."""
    seen = {key: value for key, value in labels.items() if key in selected_keys(selector)}

    assert selects(selector, seen) == selects(selector, labels)


@given(LABELS)
def test_a_missing_selector_selects_nothing(labels: dict[str, str]) -> None:
    """The Kubernetes API defines it so for an omitted field."""
    assert not selects(None, labels)
