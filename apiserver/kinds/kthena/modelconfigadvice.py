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
_TRANSFER: Final = ("kv-transfer-config", "kv_transfer_config")
_HIGHEST_PORT: Final = 65535


def config_advice(where: str, workers: list[Json]) -> Iterator[str]:
    """Yield warnings about the worker configs of one backend, whose path is `where`."""
    ports: set[int] = set()
    connectors: set[str] = set()
    for position, worker in enumerate(workers):
        config, here = worker.get("config"), f"{where}.workers[{position}].config"
        if config is None:
            continue
        if not isinstance(config, dict):
            yield f"{here}: not an object with the arguments of the engine, so it has no effect"
            continue
        if config.get("port") is not None:
            yield from _port(here, config["port"], ports)
        for name in _TRANSFER:
            if name in config:
                yield from _transfer(f"{here}.{name}", config[name], str(worker.get("type")), connectors)
                break
    if len(ports) > 1:
        yield f"{where}.workers: engines listen on different ports: {', '.join(map(str, sorted(ports)))}"
    if len(connectors) > 1:
        yield f"{where}.workers: kv_connector differs: {', '.join(sorted(connectors))[:60]}"


def _port(here: str, port: JsonValue, ports: set[int]) -> Iterator[str]:
    if isinstance(port, bool) or not str(port).isascii() or not str(port).isdigit():
        yield f"{here}.port: not a number"
    elif not 1 <= int(str(port)[:6]) <= _HIGHEST_PORT:
        yield f"{here}.port: not between 1 and {_HIGHEST_PORT}"
    else:
        ports.add(int(port))


def _transfer(here: str, value: JsonValue, worker_type: str, connectors: set[str]) -> Iterator[str]:
    found = transfer_of(value)
    if not isinstance(found, dict) or not isinstance(found.get("kv_connector"), str):
        yield f"{here}: not a JSON object with a kv_connector"
        return
    connectors.add(found["kv_connector"])
    allowed = _ROLES.get(worker_type)
    if allowed and found.get("kv_role") not in allowed:
        yield f"{here}: kv_role of a {worker_type} worker is {' or '.join(allowed)}"


def transfer_of(value: JsonValue) -> JsonValue:
    """Return the KV transfer config, given as an object or as JSON text; None if the text is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None
