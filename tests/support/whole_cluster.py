"""All objects of a cluster, without transient ones and without counters of the cluster."""

from __future__ import annotations

import copy
import time
from typing import Any, Final

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError
from support.polling import pause

Objects = dict[tuple[str, str, str], Any]
"""Objects by resource, namespace and name."""

_PASSING: Final = frozenset({"events", "leases", "componentstatuses"})
_COUNTED: Final = ("resourceVersion", "managedFields", "generation")
_PATIENCE_SECONDS: Final = 90.0


def everything(plane: ControlPlane) -> Objects:
    """Read all objects that can be listed."""
    with plane.client() as client:
        return {
            (f"{group}/{resource['name']}", metadata.get("namespace", ""), metadata["name"]): _lasting(item)
            for group in _versions(client)
            for resource in _resources(client, group)
            for item in _listed(client, f"{group}/{resource['name']}")
            if (metadata := item["metadata"])
        }


def quiet(plane: ControlPlane) -> Objects:
    """Return all objects once two consecutive reads, of hundreds of requests each, are equal."""
    deadline, last = time.monotonic() + _PATIENCE_SECONDS, everything(plane)
    while (found := everything(plane)) != last:
        assert time.monotonic() < deadline, differing(last, found)
        last = found
        pause()
    return found


def settled(plane: ControlPlane, wanted: Objects) -> Objects:
    """Return all objects as soon as they equal the wanted ones, or after a timeout.

    Objects derived by the cluster's own controllers follow some moments later.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := everything(plane)) != wanted:
        if time.monotonic() > deadline:
            break
        pause()
    return found


def differing(one: Objects, other: Objects) -> dict[tuple[str, str, str], tuple[Any, Any]]:
    """Return the objects that are missing in one of the two, or differ."""
    return {
        key: (one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    }


def _versions(client: Client) -> list[str]:
    groups = client.value("GET", "/apis")["groups"]
    return ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]


def _resources(client: Client, version: str) -> list[dict[str, Any]]:
    try:
        listed = client.value("GET", version)["resources"]
    except RefusedError:
        return []  # the group was removed meanwhile
    return [
        item
        for item in listed
        if "list" in item.get("verbs", ()) and "/" not in item["name"] and item["name"] not in _PASSING
    ]


def _listed(client: Client, path: str) -> list[dict[str, Any]]:
    """List a collection; retry on 429 after a change of its definition, and return nothing on 404."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return list(client.value("GET", path).get("items") or [])
        except RefusedError as error:
            if ": 404: " in str(error):
                return []
            if ": 429: " not in str(error) or time.monotonic() > deadline:
                raise


def _lasting(item: dict[str, Any]) -> dict[str, Any]:
    kept = copy.deepcopy(item)
    kept.pop("status", None)
    for name in _COUNTED:
        kept["metadata"].pop(name, None)
    return kept
