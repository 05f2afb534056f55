"""Objects by the group that they belong to."""

from __future__ import annotations

from apiserver.cluster.cache import Change, Grouped
from apiserver.schema.json import Json


def item(name: str, group: str, text: str = "") -> Json:
    """Return an object of a group."""
    return {"metadata": {"name": name}, "group": group, "text": text}


def change(old: Json | None, new: Json | None) -> Change:
    """Return a change of an object."""
    return Change(key=("ns", (new or old or {})["metadata"]["name"]), old=old, new=new)


def test_objects_are_found_by_group_after_every_change() -> None:
    """An update keeps the order, as long as the object stays in its group."""
    grouped = Grouped(lambda value: (str(value["group"]), str(value["metadata"]["name"])))
    one, two = item("one", "a"), item("two", "a")
    for new in (one, two):
        grouped.take(change(None, new))

    changed = item("one", "a", "changed")
    grouped.take(change(one, changed))
    assert list(grouped.of("a").items()) == [("one", changed), ("two", two)]

    moved = item("one", "b")
    grouped.take(change(changed, moved))
    grouped.take(change(two, None))
    assert (grouped.of("a"), grouped.of("b")) == ({}, {"one": moved})
