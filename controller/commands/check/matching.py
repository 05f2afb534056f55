"""Detection of objects whose kind is almost one of ours, with kubectl's error and a suggestion.

A cluster with Stowplan rejects such an object like any other cluster, unless another project defines the
kind, which is only possible in a group that others use as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.registry import KINDS, find_kind, find_version

_OF_OTHERS: Final[Mapping[str, frozenset[str]]] = {
    "inference.networking.x-k8s.io": frozenset(
        ["InferenceModel", "InferenceModelRewrite", "InferencePool", "InferencePoolImport"]
    )
}
"""Kinds that the Gateway API Inference Extension defines in a group of ours."""
_RELATED: Final[Mapping[str, tuple[str, ...]]] = {
    "networking.serving.volcano.sh": ("networking.volcano.sh",),
    "workload.serving.volcano.sh": ("registry.volcano.sh",),
    "serving.volcano.sh": ("networking.volcano.sh", "registry.volcano.sh"),
    "llm-d.ai": ("llmd.ai", "inference.networking.x-k8s.io"),
}
"""Groups to which other releases of the same projects moved kinds of ours, with our groups. Their subgroups
count, too."""
_LEAST_SIMILARITY: Final = 0.75
"""The similarity from which a name is a typing error: ModelServr for ModelServer is one, ModelInfer is
not."""
_LEAST_SIMILARITY_OF_GROUPS: Final = 0.88
"""The same for API groups: llm-d.ai is one, networking.serving.volcano.sh, a group of Kthena, is not."""
_MOST_SUGGESTIONS: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """Why no server accepts an object, and the field that must change."""

    field: str
    message: str


def mismatch(api_version: str, kind: str) -> Mismatch | None:
    """Return what is wrong with the kind or version of an object, in kubectl's words; then what is served.

    Returns None for a kind that is served, and for one that is unrelated. Wording:
    `k8s.io/apimachinery/pkg/api/meta/errors.go`, `NoKindMatchError`.
    """
    group = api_version.rpartition("/")[0]
    if find_version(api_version, kind) is not None or _is_of_others(group, kind):
        return None
    no_matches = f'no matches for kind "{kind}" in version "{api_version}"'
    if (known := find_kind(group, kind)) is not None:
        served = ", ".join(f"{group}/{version.name}" for version in known.versions)
        return Mismatch(field="apiVersion", message=f"{no_matches}: the served versions are {served}")
    here = [name for version, name in _served_kinds() if version == api_version]
    if not here:
        return _misspelt_group(group, kind, no_matches)
    meant = _nearest(api_version, kind)
    advice = f"did you mean {' or '.join(meant)}?" if meant else f"the served kinds are {', '.join(here)}"
    return Mismatch(field="kind", message=f"{no_matches}: {advice}")


def other_release(api_version: str) -> str:
    """Return that the group of an object is the one of another release; empty for all other groups."""
    group = api_version.rpartition("/")[0]
    parts = group.split(".")
    names = (".".join(parts[place:]) for place in range(len(parts)))
    ours = next((_RELATED[name] for name in names if name in _RELATED), ())
    if not ours:
        return ""
    return f"this release supports the kinds of {' and '.join(ours)}, not those of {group}"


def _misspelt_group(group: str, kind: str, no_matches: str) -> Mismatch | None:
    """Return what is wrong with a kind of our name in a group that is almost ours, such as llm-d.ai.

    Other projects have a Model, too: the group must be similar.
    """
    groups = {known.group: known for known in KINDS if known.kind == kind}
    meant = difflib.get_close_matches(group.casefold(), groups, 1, _LEAST_SIMILARITY_OF_GROUPS)
    if not meant:
        return None
    versions = " or ".join(f"{meant[0]}/{version.name}" for version in groups[meant[0]].versions)
    return Mismatch(field="apiVersion", message=f"{no_matches}: did you mean {versions}?")


def _is_of_others(group: str, kind: str) -> bool:
    return kind.removesuffix("List") in _OF_OTHERS.get(group, ())


def _nearest(api_version: str, kind: str) -> list[str]:
    """Return the kind of that name in another case or group; otherwise those with similar names."""
    places = {name.casefold(): (version, name) for version, name in _served_kinds()}
    places |= {
        name.casefold(): (version, name) for version, name in _served_kinds() if version == api_version
    }
    wanted = kind.casefold()
    names = (
        [wanted]
        if wanted in places
        else difflib.get_close_matches(wanted, places, _MOST_SUGGESTIONS, _LEAST_SIMILARITY)
    )
    found = [places[name] for name in names]
    return [name if version == api_version else f"{name} of {version}" for version, name in found]


def _served_kinds() -> list[tuple[str, str]]:
    return [(f"{kind.group}/{version.name}", kind.kind) for kind in KINDS for version in kind.versions]
