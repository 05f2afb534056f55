"""Keeps the last valid settings in a ConfigMap, and reports what is wrong with the present ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.events import EventKind, EventRecorder
from apiserver.cluster.resource import CONFIG_MAPS
from apiserver.kinds.settings_names import LAST_VALID
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.observe.claim import Place
from controller.observe.conditions import EventReason
from controller.observe.policies import Policies, SettingsProblem
from controller.observe.settings_reading import KEY, PolicyReader, read_last_valid, record_of

_log = EventLogger(__name__)


class SettingsKeeper:
    """Writes the record when it differs from the stored one, and an event when a problem begins or ends."""

    def __init__(
        self,
        cluster: Cluster,
        events: EventRecorder,
        *,
        namespace: str,
        reader: PolicyReader,
        config_maps: Callable[[], Mapping[str, Json]],
        now: Callable[[], datetime],
        named: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`config_maps` are those of `namespace` by name, which `reader` reads; objects refer to `named`."""
        self._cluster = cluster
        self._events = events
        self._namespace = namespace
        self._config_maps = config_maps
        self._named = named
        self._reader = reader
        self._now = now
        self._known: Mapping[Place, SettingsProblem] = {}
        self._unkept: SettingsProblem | None = None

    def restore(self) -> None:
        """Continue from the record of the previous leader, if it can be read."""
        try:
            self._reader.last_valid = read_last_valid(self._config_maps().get(LAST_VALID))
        except ValueError as error:
            _log.warning("last valid settings not read", why=str(error))

    def policies(self) -> Policies:
        """Return the settings in force."""
        return self._reader.read(self._config_maps(), named=self._named())

    async def keep(self) -> SettingsProblem | None:
        """Store the record if it has changed; return the problem if that is refused.

        The next cycle retries. Until then, this leader alone knows the settings.
        """
        text = record_of(self._reader.last_valid)
        stored = (self._config_maps().get(LAST_VALID) or {}).get("data") or {}
        why = "" if stored.get(KEY) == text else await self._write(text)
        if not why:
            self._unkept = None
            return None
        since = self._unkept.since if self._unkept else self._now()
        problem = f"the last valid settings cannot be stored for the next leader: {why}"
        self._unkept = SettingsProblem(config_map=LAST_VALID, text=problem, since=since)
        return self._unkept

    async def _write(self, text: str) -> str:
        """Write the record; return why that is refused, or nothing."""
        change = {"data": {KEY: text}}
        try:
            await self._cluster.patch_merge(CONFIG_MAPS, LAST_VALID, change, namespace=self._namespace)
        except ClusterError as error:
            return error.message
        return ""

    def announce(self, problems: tuple[SettingsProblem, ...]) -> None:
        """Record an event on each ConfigMap with which something begins, or ends, to be wrong."""
        now = {(item.config_map, item.key): item for item in problems}
        for place, problem in now.items():
            if place not in self._known or self._known[place].text != problem.text:
                self._record(place[0], "Warning", EventReason.SETTINGS_INVALID, str(problem))
        for place in self._known.keys() - now.keys():
            at = f"key {place[1]}" if place[1] else "the ConfigMap"
            self._record(
                place[0], "Normal", EventReason.SETTINGS_VALID, f"{at} is valid again, or was removed"
            )
        self._known = now

    def _record(self, name: str, type_: EventKind, reason: EventReason, note: str) -> None:
        config_map = self._config_maps().get(name) or {}
        about = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": name, "namespace": self._namespace} | (config_map.get("metadata") or {}),
        }
        self._events.record(about, type=type_, reason=reason, action="ReadSettings", note=note)
