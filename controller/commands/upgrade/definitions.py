"""The CustomResourceDefinition of a kind at each stage of a migration: pure functions on raw JSON."""

from __future__ import annotations

from apiserver.cluster.namespaces import INSTALLATION
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest
from controller.commands.upgrade.ownership import is_ours, without_label, without_our_chart


def transitional_definition(
    kind: Kind, live: Json | None, *, storage: str, ca_bundle: str, namespace: str = INSTALLATION
) -> Json:
    """Return the definition with all our versions, with `storage` as the storage version.

    The conversion webhook and its caBundle are set in the same write that serves a second version, since
    otherwise every read of that version would fail in between. The converter runs in `namespace`. Metadata
    written by others is kept.
    """
    wanted = crd_manifest(kind)
    for version in wanted["spec"]["versions"]:
        version["storage"] = version["name"] == storage
    if kind.has_conversion:
        client = wanted["spec"]["conversion"]["webhook"]["clientConfig"]
        client["service"]["namespace"] = namespace
        if ca_bundle:
            client["caBundle"] = ca_bundle
    return _over(live, wanted)


def withdrawn(kind: Kind, live: Json) -> Json:
    """Return the definition to leave: only the oldest version, with every shape, and without our label.

    Somebody who deletes all objects with our label must not delete it. Marks of our chart go, too, so that
    another run does not take it for one of another chart.
    """
    wanted = crd_manifest(kind)
    oldest = wanted["spec"]["versions"][0]
    for name in ("deprecated", "deprecationWarning"):
        oldest.pop(name, None)
    wanted["spec"] |= {"versions": [oldest | {"storage": True}], "conversion": {"strategy": "None"}}
    return without_label(without_our_chart(live)) | {"spec": wanted["spec"]}


def says(live: Json | None, wanted: Json) -> bool:
    """Tell whether a live definition matches the wanted one, apart from what the server adds."""
    return live is not None and is_ours(live) and _specifies(live["spec"], wanted["spec"])


def _specifies(spec: Json, asked: Json) -> bool:
    return _equal(spec["versions"], asked["versions"]) and all(
        _holds(spec.get(name), asked[name]) for name in ("names", "conversion") if name in asked
    )


def is_given_back(kind: Kind, live: Json) -> bool:
    """Tell whether objects can be downgraded under a definition: it prunes none of their fields.

    It is ours, or the one that a downgrade leaves.
    """
    return is_ours_still(kind, live) or _specifies(live["spec"], withdrawn(kind, live)["spec"])


def is_ours_still(kind: Kind, live: Json) -> bool:
    """Tell whether a definition is ours, and is not given back to an earlier release.

    An earlier version of this program left our label on those.
    """
    is_old = kind.has_conversion and served_versions(live) == (kind.versions[0].name,)
    return is_ours(live) and not is_old


def served_versions(live: Json | None) -> tuple[str, ...]:
    """Return the names of the served versions, in the order of the definition."""
    return tuple(version["name"] for version in _versions(live) if version["served"])


def storage_version(live: Json | None) -> str:
    """Return the name of the storage version; empty without a definition."""
    return next((version["name"] for version in _versions(live) if version["storage"]), "")


def stored_versions(live: Json | None) -> tuple[str, ...]:
    """Return every version in which objects may still be stored."""
    return tuple(((live or {}).get("status") or {}).get("storedVersions") or ())


def condition(live: Json, name: str) -> str:
    """Return the status of a condition of the definition; empty if it does not exist."""
    conditions = (live.get("status") or {}).get("conditions") or []
    return next((str(item["status"]) for item in conditions if item["type"] == name), "")


def _over(live: Json | None, wanted: Json) -> Json:
    """Replace the live spec by the wanted one; the resource version that was read guards the write."""
    if live is None:
        return wanted
    metadata = live["metadata"]
    labels = (metadata.get("labels") or {}) | wanted["metadata"]["labels"]
    return live | {"metadata": metadata | {"labels": labels}, "spec": wanted["spec"]}


def _versions(live: Json | None) -> list[Json]:
    return list(((live or {}).get("spec") or {}).get("versions") or [])


def _holds(live: JsonValue, wanted: JsonValue) -> bool:
    if wanted == []:
        return not live  # the server omits an empty list
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _equal(live, wanted)
    return all(_holds(live.get(name), item) for name, item in wanted.items())


def _equal(one: JsonValue, other: JsonValue) -> bool:
    return same(_numbers_alike(one), _numbers_alike(other))


def _numbers_alike(value: JsonValue) -> JsonValue:
    """Convert every number to a double, as the server does."""
    if isinstance(value, dict):
        return {name: _numbers_alike(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers_alike(item) for item in value]
    return float(value) if type(value) is int else value
