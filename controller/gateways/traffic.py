"""Targets of a rule: their weights, timeouts and retries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.inference.inferenceobjective import POOL_GROUP, POOL_KIND
from apiserver.schema import durations
from apiserver.schema.json import Json
from controller.expansion.parts import Note

_NANOSECONDS: Final = 1_000_000
"""Nanoseconds per millisecond, the resolution of a Gateway's durations."""

_UNITS: Final = (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_DEFAULT_INTERVAL: Final = "100ms"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Policy:
    """The traffic policy of a ModelServer, in milliseconds."""

    timeout: int
    """Request timeout; 0 for none."""

    attempts: int
    interval: int


def backend_references(rule: Json) -> list[Json]:
    """Return the pools of a rule, by the names of its ModelServers, with their weights."""
    return [
        {
            "group": POOL_GROUP,
            "kind": POOL_KIND,
            "name": target["modelServerName"],
            "weight": target["weight"],
        }
        for target in rule["targetModels"]
    ]


def traffic_fields(
    rule: Json, servers: Mapping[str, Json], fields: frozenset[str], path: str
) -> tuple[Json, list[Note]]:
    """Return `timeouts` and `retry` of the rule at `path`, by the policies of its servers.

    A rule has one of each: if servers differ, the longest timeout and the most attempts. `fields` are those
    that the installed definition supports.
    """
    names = dict.fromkeys(target["modelServerName"] for target in rule["targetModels"] if target["weight"])
    policies = {name: _policy(servers[name]) for name in names if name in servers}
    if not policies:
        return {}, []
    timeouts = {policy.timeout for policy in policies.values()}
    timeout = 0 if 0 in timeouts else max(timeouts)
    retry = max(policies.values(), key=lambda policy: (policy.attempts, policy.interval))
    found: Json = {"timeouts": {"request": gateway_duration(timeout)}}
    if retry.attempts:
        found["retry"] = {"attempts": retry.attempts, "backoff": gateway_duration(retry.interval)}
    notes = [
        note
        for name, policy in policies.items()
        for note in _lost_parts(
            policy, (timeout, retry), fields, at=f"ModelServer {name}: spec.trafficPolicy", rule=path
        )
    ]
    return {name: value for name, value in found.items() if name in fields}, notes


def gateway_duration(milliseconds: int) -> str:
    """Return a duration in the format of the Gateway API (GEP-2257)."""
    parts = []
    for unit, size in _UNITS:
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _policy(server: Json) -> _Policy:
    policy = server["spec"].get("trafficPolicy") or {}
    retry = policy.get("retry") or {}
    attempts = int(retry.get("attempts", 0))
    return _Policy(
        timeout=_milliseconds(policy.get("timeout", "0s")),
        attempts=attempts,
        interval=_milliseconds(retry.get("retryInterval", _DEFAULT_INTERVAL)) if attempts else 0,
    )


def _milliseconds(text: str) -> int:
    """Return a duration in milliseconds, rounded up."""
    return -(-(durations.nanoseconds(text) or 0) // _NANOSECONDS)


def _lost_parts(
    policy: _Policy, taken: tuple[int, _Policy], fields: frozenset[str], *, at: str, rule: str
) -> Iterator[Note]:
    """Yield notes about parts of the policy `at` that differ from what the rule uses."""
    timeout, retry = taken
    if policy.timeout and "timeouts" not in fields:
        yield Note(path=f"{at}.timeout", text=_too_old("timeouts"))
    elif policy.timeout != timeout:
        longest = gateway_duration(timeout) if timeout else "none"
        yield Note(path=f"{at}.timeout", text=f"{rule} has one timeout for all of its targets: {longest}")
    if policy.attempts and "retry" not in fields:
        yield Note(path=f"{at}.retry", text=_too_old("retry"))
    elif (policy.attempts, policy.interval) != (retry.attempts, retry.interval):
        text = f"{rule} has one retry for all of its targets: {retry.attempts} attempts"
        yield Note(path=f"{at}.retry", text=text)


def _too_old(field: str) -> str:
    return f"the installed definition of HTTPRoutes has no {field}"
