"""Sources of the weights of a model and its adapters, and their folders in the engine's container.

Weights of a `pvc://` are used in place, unless the cache is on another volume. All others are downloaded
before the engine starts, by command-line programs that resume interrupted downloads: `hf` of the engine's
image for `hf://`, the AWS command line for `s3://`. Pods with a shared cache use a file lock, which the
operating system releases when its holder dies.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.parts import Part

CACHE_PATH: Final = "/weights"
"""Mount path of the cache."""

SOURCES_PATH: Final = "/sources"
"""Mount path of the volumes with weights."""

_CACHE_VOLUME: Final = "weights"
_DIGEST_CHARACTERS: Final = 10
_MOST_SLUG_CHARACTERS: Final = 48
_OF_EVERY_POD: Final = ("cpu", "memory", "ephemeral-storage")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._]+")

FETCH: Final = """\
set -eu
while [ $# -gt 0 ]; do
  source=$1 target=$2
  shift 2
  mkdir -p "$target"
  exec 9>"$target.lock"
  flock 9
  if [ ! -e "$target.complete" ]; then
    case $source in
    hf://*)
      program=hf
      command -v hf >/dev/null || program=huggingface-cli
      "$program" download "${source#hf://}" --local-dir "$target" ;;
    s3://*)
      aws s3 sync "$source" "$target" ${ENDPOINT:+--endpoint-url "$ENDPOINT"} ;;
    *)
      cp -R "$source/." "$target" ;; # anew: what was broken off is newer than its source
    esac
    touch "$target.complete"
  fi
  exec 9>&-
done
"""
"""Shell script with pairs of a source and a folder as arguments. Completed folders are skipped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """What a pod needs to access its weights."""

    model_path: str
    adapter_paths: Mapping[str, str]
    """Folders by adapter name."""

    adapter_sources: Mapping[str, str]
    """Sources of adapters that are downloaded while the engine runs, by name; empty if present before it
    starts."""

    volumes: tuple[Json, ...]
    mounts: tuple[Json, ...]
    """Volume mounts of the engine."""

    fetchers: tuple[Json, ...]
    """Init containers that download weights."""


def weights_of(part: Part, *, s3_image: str) -> Weights:
    """Return how the pods of a part get their weights."""
    backend = part.backend
    # Sorted, so that another order of adapters does not change the pods.
    adapters = dict(sorted((item["name"], item["artifactURL"]) for item in backend.get("loraAdapters", [])))
    cache = backend.get("cacheURI", "")
    sources = (backend["modelURI"], *adapters.values())
    places = {uri: _place(uri, cache) for uri in sources}
    volumes, mounts = _volumes(sources, cache)
    fetched = {uri: path for uri, path in places.items() if path.startswith(f"{CACHE_PATH}/")}
    # The engine's image has no program for buckets, so adapters in buckets are downloaded before it starts.
    later = {
        name: _read_from(uri)
        for name, uri in adapters.items()
        if part.loads_adapters and uri in fetched and uri != backend["modelURI"] and not _in_bucket(uri)
    }
    before = [(uri, path) for uri, path in fetched.items() if _read_from(uri) not in later.values()]
    return Weights(
        model_path=places[backend["modelURI"]],
        adapter_paths={name: places[uri] for name, uri in adapters.items()},
        adapter_sources={name: later.get(name, "") for name in adapters},
        volumes=tuple(volumes),
        mounts=tuple(mounts),
        fetchers=tuple(_fetchers(part, before, mounts, s3_image=s3_image)),
    )


def _place(uri: str, cache: str) -> str:
    """Return the folder of a source in the engine's container."""
    claim, path = _claim(uri)
    if claim and (not cache or _claim(cache)[0] == claim):
        return _in_source(claim, path)
    return f"{CACHE_PATH}/{_folder(uri)}"


def _folder(uri: str) -> str:
    """Return a unique folder name that shows the source."""
    slug = _NOT_IN_NAMES.sub("-", uri.partition("://")[2]).strip("-.")[-_MOST_SLUG_CHARACTERS:]
    return f"{slug}-{hashlib.sha256(uri.encode()).hexdigest()[:_DIGEST_CHARACTERS]}"


def _claim(uri: str) -> tuple[str, str]:
    """Return the claim name of a `pvc://` and the path in its volume; empty strings for other schemes."""
    scheme, _, rest = uri.partition("://")
    if scheme != "pvc":
        return "", ""
    claim, _, path = rest.strip("/").partition("/")
    return claim, path


def _in_source(claim: str, path: str) -> str:
    return "/".join(filter(None, (f"{SOURCES_PATH}/{claim}", path.strip("/"))))


def _volumes(sources: Sequence[str], cache: str) -> tuple[list[Json], list[Json]]:
    volumes: list[Json] = [{"name": _CACHE_VOLUME, **_cache_source(cache)}]
    mount: Json = {"name": _CACHE_VOLUME, "mountPath": CACHE_PATH}
    if path := _claim(cache)[1]:
        mount["subPath"] = path.strip("/")
    mounts = [mount]
    first, *others = (_claim(uri)[0] for uri in sources)
    claims = [claim for claim in dict.fromkeys((first, *sorted(others))) if claim]
    for position, claim in enumerate(claims):
        name = f"source-{position}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
        mounts.append({"name": name, "mountPath": _in_source(claim, ""), "readOnly": True})
    return volumes, mounts


def _cache_source(cache: str) -> Json:
    if not cache:
        return {"emptyDir": {}}
    if claim := _claim(cache)[0]:
        return {"persistentVolumeClaim": {"claimName": claim}}
    path = "/" + cache.partition("://")[2].strip("/")
    return {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _fetchers(
    part: Part, fetched: Sequence[tuple[str, str]], mounts: Sequence[Json], *, s3_image: str
) -> Iterator[Json]:
    """Yield one init container for each image whose programs are needed."""
    from_bucket = [pair for pair in fetched if _in_bucket(pair[0])]
    others = [pair for pair in fetched if pair not in from_bucket]
    for name, image, pairs in (
        ("fetch-weights", part.worker["image"], others),
        ("fetch-from-bucket", s3_image, from_bucket),
    ):
        if not pairs:
            continue
        words = [word for uri, path in pairs for word in (_read_from(uri), path)]
        container: Json = {
            "name": name,
            "image": image,
            "command": ["/bin/sh", "-c", FETCH, "fetch", *words],
            "volumeMounts": list(mounts),
            # If a program fails, its last lines of output appear in the status of the pod.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **part.environment,
        }
        if resources := _resources(part):
            container["resources"] = resources
        yield container


def _resources(part: Part) -> Json:
    """Return the resources of an init container: those of the engine, without accelerators.

    They do not increase the pod's total, and a ResourceQuota rejects pods with a container that has none.
    """
    resources = part.worker.get("resources") or {}
    kept = {
        member: {
            name: amount for name, amount in (resources.get(member) or {}).items() if name in _OF_EVERY_POD
        }
        for member in ("requests", "limits")
    }
    return {member: amounts for member, amounts in kept.items() if amounts}


def _in_bucket(uri: str) -> bool:
    return uri.startswith("s3://")


def _read_from(uri: str) -> str:
    claim, path = _claim(uri)
    return _in_source(claim, path) if claim else uri
