"""Warnings about settings in a worker's `config` that an engine will probably reject.

The config has no schema, since engines differ and gain settings with every release. So these are only
warnings, and only about settings with an unambiguous meaning: the port, and the transfer of the KV cache from
prefill to decode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue

_ROLES: Final = {
    "prefill": ("kv_producer", "kv_both"),
    "decode": ("kv_consumer", "kv_both"),
}
_DASHED: Final = "kv-transfer-config"
_UNDERSCORED: Final = "kv_transfer_config"
_HIGHEST_PORT: Final = 65535


def config_advice(where: str, workers: list[Json]) -> Iterator[str]:
    """Yield warnings about the worker configs of one backend, whose path is `where`."""
    ports: set[int] = set()
    connectors: set[str] = set()
    for position, worker in enumerate(workers):
        config = worker.get("config")
        if config is None:
            continue
        if not isinstance(config, dict):
            here = f"{where}.workers[{position}].config"
            yield f"{here}: not an object with the arguments of the engine, so it has no effect"
            continue
        if config.get("port") is not None and (wrong := _port(config["port"], ports)):
            yield f"{where}.workers[{position}].config.port: {wrong}"
        if _DASHED not in config and _UNDERSCORED not in config:
            continue
        name = _DASHED if _DASHED in config else _UNDERSCORED
        if wrong := _transfer(config[name], str(worker.get("type")), connectors):
            yield f"{where}.workers[{position}].config.{name}: {wrong}"
    if len(ports) > 1:
        yield f"{where}.workers: engines listen on different ports: {', '.join(map(str, sorted(ports)))}"
    if len(connectors) > 1:
        yield f"{where}.workers: kv_connector differs: {', '.join(sorted(connectors))[:60]}"


def _port(port: JsonValue, ports: set[int]) -> str:
    """Return why a port is wrong; add a valid one to the others."""
    if isinstance(port, bool) or not str(port).isascii() or not str(port).isdigit():
        return "not a number"
    if not 1 <= int(str(port)[:6]) <= _HIGHEST_PORT:
        return f"not between 1 and {_HIGHEST_PORT}"
    ports.add(int(port))
    return ""


def _transfer(value: JsonValue, worker_type: str, connectors: set[str]) -> str:
    """Return why a transfer is wrong; add its connector to the others."""
    transfer = transfer_of(value)
    if not isinstance(transfer, dict) or not isinstance(transfer.get("kv_connector"), str):
        return "not a JSON object with a kv_connector"
    connectors.add(transfer["kv_connector"])
    allowed = _ROLES.get(worker_type)
    if allowed and transfer.get("kv_role") not in allowed:
        return f"kv_role of a {worker_type} worker is {' or '.join(allowed)}"
    return ""


def transfer_of(value: JsonValue) -> JsonValue:
    """Return the KV transfer config, given as an object or as JSON text; None if the text is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None
