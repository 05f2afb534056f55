"""The CustomResourceDefinition of a kind at each stage of the way up and back: pure functions on raw JSON."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.namespaces import INSTALLATION
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest
from apiserver.schema.undecoded import same

_LABEL: Final = "app.kubernetes.io/part-of"
_OURS: Final = "stowplan"


def staged(
    kind: Kind, live: Json | None, *, storage: str, ca_bundle: str, namespace: str = INSTALLATION
) -> Json:
    """Return the definition with all our versions, of which `storage` is the one that is stored.

    Conversion and its trust go in with the same write that serves a second version: in between, every read
    of that version would fail. The converter runs in `namespace`. What others wrote into the metadata stays.
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
    """Return the definition with the oldest version alone: its schema is the union of every shape."""
    wanted = crd_manifest(kind)
    oldest = wanted["spec"]["versions"][0]
    for name in ("deprecated", "deprecationWarning"):
        oldest.pop(name, None)
    wanted["spec"] |= {"versions": [oldest | {"storage": True}], "conversion": {"strategy": "None"}}
    return _over(live, wanted)


def says(live: Json | None, wanted: Json) -> bool:
    """Tell whether a definition that was read says what is wanted, beside what the server adds to it."""
    if live is None or not is_ours(live):
        return False
    spec, asked = live["spec"], wanted["spec"]
    return _equal(spec["versions"], asked["versions"]) and all(
        _holds(spec.get(name), asked[name]) for name in ("names", "conversion") if name in asked
    )


def is_ours(live: Json) -> bool:
    """Tell whether a definition carries our label."""
    return (live["metadata"].get("labels") or {}).get(_LABEL) == _OURS


def is_given_back(kind: Kind, live: Json) -> bool:
    """Tell whether objects can be given back under a definition: it is ours, and keeps every field of them.

    Our label stays when a release's own definition is applied over what we left, so of one version alone
    the whole definition has to be what we leave.
    """
    if not is_ours(live):
        return False
    return served_versions(live) != (kind.versions[0].name,) or says(live, withdrawn(kind, live))


def served_versions(live: Json | None) -> tuple[str, ...]:
    """Return the names of the versions that are served, in the definition's order."""
    return tuple(version["name"] for version in _versions(live) if version["served"])


def storage_version(live: Json | None) -> str:
    """Return the name of the version that is stored; empty without a definition."""
    return next((version["name"] for version in _versions(live) if version["storage"]), "")


def stored_versions(live: Json | None) -> tuple[str, ...]:
    """Return every version that some object may still be stored in."""
    return tuple(((live or {}).get("status") or {}).get("storedVersions") or ())


def condition(live: Json, name: str) -> str:
    """Return the status of a condition of the definition; empty when it is not there."""
    conditions = (live.get("status") or {}).get("conditions") or []
    return next((str(item["status"]) for item in conditions if item["type"] == name), "")


def _over(live: Json | None, wanted: Json) -> Json:
    """Put the wanted spec in the place of the live one; the version that was read guards the write."""
    if live is None:
        return wanted
    metadata = live["metadata"]
    labels = (metadata.get("labels") or {}) | wanted["metadata"]["labels"]
    return live | {"metadata": metadata | {"labels": labels}, "spec": wanted["spec"]}


def _versions(live: Json | None) -> list[Json]:
    return list(((live or {}).get("spec") or {}).get("versions") or [])


def _holds(live: JsonValue, wanted: JsonValue) -> bool:
    if wanted == []:
        return not live  # the server leaves an empty list out
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _equal(live, wanted)
    return all(_holds(live.get(name), item) for name, item in wanted.items())


def _equal(one: JsonValue, other: JsonValue) -> bool:
    return same(_numbers_alike(one), _numbers_alike(other))


def _numbers_alike(value: JsonValue) -> JsonValue:
    """Read every number as the server does: as a double."""
    if isinstance(value, dict):
        return {name: _numbers_alike(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers_alike(item) for item in value]
    return float(value) if type(value) is int else value
