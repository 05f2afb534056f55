"""The record of the last valid settings, and events about invalid ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden
from apiserver.cluster.events import EventRecorder
from apiserver.kinds.settings_names import LAST_VALID
from apiserver.schema.json import Json
from controller.observe.settings_reading import KEY, PolicyReader, read_last_valid
from controller.variants.settings_keeping import SettingsKeeper

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLASS = "priority: 1\ndata: [{model: llama}]"


@dataclass
class Stage:
    """A namespace with ConfigMaps, and the events about them."""

    maps: dict[str, Json] = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    writes: int = 0
    refuses: bool = False

    async def patch_merge(self, _resource: object, name: str, change: Json, **_options: object) -> Json:
        """Write a ConfigMap that exists."""
        self.writes += 1
        if self.refuses:
            raise Forbidden("denied")
        self.maps[name] = self.maps[name] | change
        return self.maps[name]

    def record(self, about: Json, **event: Any) -> None:
        """Record an event."""
        self.events.append((about["metadata"]["name"], event["type"], event["reason"]))

    def keeper(self) -> SettingsKeeper:
        """Return the keeper of a new leader."""
        keeper = SettingsKeeper(
            cast("Cluster", self),
            cast("EventRecorder", self),
            namespace="system",
            reader=PolicyReader(unit_costs="costs", default_classes="classes", now=lambda: NOON),
            config_maps=lambda: self.maps,
            now=lambda: NOON,
        )
        keeper.restore()
        return keeper


def stage(**options: Any) -> Stage:
    """Return a namespace with a service class and an empty record."""
    return Stage(maps={"classes": {"data": {"a": CLASS}}, "costs": {}, LAST_VALID: {}}, **options)


async def test_a_record_is_written_on_changes_only() -> None:
    """The next leader continues with it."""
    one = stage()
    keeper = one.keeper()
    for _ in range(2):
        keeper.policies()
        assert await keeper.keep() is None

    assert (one.writes, read_last_valid(one.maps[LAST_VALID]).texts) == (1, {"classes": {"a": CLASS}})
    del one.maps["classes"]
    assert one.keeper().policies().classes["classes", "a"].priority == 1


async def test_a_deleted_record_is_written_again() -> None:
    """It does not give anything up: this leader knows the settings."""
    one = stage()
    keeper = one.keeper()
    keeper.policies()
    await keeper.keep()
    del one.maps["classes"]
    one.maps[LAST_VALID] = {}

    found = keeper.policies()
    await keeper.keep()

    assert found.classes["classes", "a"].priority == 1
    assert KEY in one.maps[LAST_VALID]["data"]


async def test_a_record_that_cannot_be_written_is_a_problem_until_it_can() -> None:
    """It names the reason and the time."""
    one = stage(refuses=True)
    keeper = one.keeper()
    keeper.policies()

    problem = await keeper.keep()
    assert str(problem) == (
        f"ConfigMap {LAST_VALID}: the last valid settings cannot be stored for the next leader: denied (since"
        " 2026-01-01T12:00:00Z)"
    )
    one.refuses = False
    assert await keeper.keep() is None


async def test_a_record_that_somebody_edited_is_replaced() -> None:
    """What the ConfigMaps contain is read anew."""
    one = stage()
    one.maps[LAST_VALID] = {"data": {KEY: "{"}}
    keeper = one.keeper()

    assert keeper.policies().classes["classes", "a"].priority == 1
    await keeper.keep()
    assert read_last_valid(one.maps[LAST_VALID]).texts == {"classes": {"a": CLASS}}


def test_events_tell_when_something_begins_and_ends_to_be_wrong() -> None:
    """They are about the ConfigMap, also if it is gone."""
    one = stage()
    keeper = one.keeper()
    keeper.policies()
    for data in ({"a": "priority: one"}, {"a": "priority: one"}, {"a": CLASS}):
        one.maps["classes"] = {"data": data}
        keeper.announce(keeper.policies().problems)
    del one.maps["classes"]
    keeper.announce(keeper.policies().problems)

    invalid = ("classes", "Warning", "SettingsInvalid")
    assert one.events == [invalid, ("classes", "Normal", "SettingsValid"), invalid]


def test_unchanged_classes_are_not_parsed_again_however_many_there_are() -> None:
    """Each takes a millisecond, and cycles run next to the renewal of the Lease."""
    reader = PolicyReader(unit_costs="costs", default_classes="classes")
    data = {f"{number}.yaml": f"name: c{number}\npriority: {number % 100 + 1}\n" for number in range(300)}

    first, second = (reader.read({"classes": {"data": data}}).classes for _ in range(2))

    assert len(first) == len(data)
    assert all(second[place] is item for place, item in first.items())
