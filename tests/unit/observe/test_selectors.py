"""What a label selector selects, beside a reference that asks each condition of its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema.json import Json
from controller.observe.selectors import selected_keys, selects

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
    """Judge by sets: of all values and of absence, which ones are left for each key."""
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
def test_every_condition_must_hold(selector: Json, labels: dict[str, str]) -> None:
    """An empty selector selects everything, and absence meets NotIn and DoesNotExist."""
    assert selects(selector, labels) == _reference(selector, labels)


@given(SELECTORS, LABELS)
def test_only_the_labels_that_it_looks_at_count(selector: Json, labels: dict[str, str]) -> None:
    """Others may say anything."""
    seen = {key: value for key, value in labels.items() if key in selected_keys(selector)}

    assert selects(selector, seen) == selects(selector, labels)


@given(LABELS)
def test_no_selector_selects_nothing(labels: dict[str, str]) -> None:
    """As the API server says of a field that is left out."""
    assert not selects(None, labels)
