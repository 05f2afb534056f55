"""The last valid settings, as the controller keeps them in a ConfigMap for the next leader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from apiserver.kinds.settings_names import LAST_VALID
from apiserver.schema.json import Json
from controller.observe.claim import Place

KEY: Final = "settings.json"
"""The key of the record in its ConfigMap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LastValid:
    """The last valid texts by ConfigMap and key, and since when something is wrong with which."""

    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    since: Mapping[Place, datetime] = field(default_factory=dict)
    """By ConfigMap and key; the key is empty for a whole ConfigMap."""


class _Wrong(msgspec.Struct, frozen=True, rename="camel"):
    config_map: str
    key: str
    since: datetime


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    last_valid: dict[str, dict[str, str]]
    invalid: list[_Wrong] = []


def record_of(last_valid: LastValid) -> str:
    """Return the record as JSON text, the same for equal content."""
    wrong = [_Wrong(*place, since) for place, since in sorted(last_valid.since.items())]
    record = _Record({name: dict(texts) for name, texts in last_valid.texts.items()}, wrong)
    return msgspec.json.encode(record, order="sorted").decode()


def read_last_valid(config_map: Json | None) -> LastValid:
    """Return the content of the controller's ConfigMap; nothing if it is missing or empty.

    Raises ValueError if somebody else has written what is no record.
    """
    text = ((config_map or {}).get("data") or {}).get(KEY)
    if text is None:
        return LastValid()
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"ConfigMap {LAST_VALID}, key {KEY}: is no record of settings: {error}") from error
    since = {(item.config_map, item.key): item.since for item in record.invalid}
    return LastValid(texts=record.last_valid, since=since)
