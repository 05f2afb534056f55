"""Comparison of an object with what a cluster serves: its kind, version, namespace and fields.

A cluster with Stowplan rejects an object whose kind is almost one of ours like any other cluster, unless
another project defines the kind, which is only possible in a group that others use as well.

The API server rejects undeclared fields and duplicate names before admission. kubectl itself silently drops
duplicates (the last one wins), so this rejects more than kubectl does, and the same as a server that receives
the file unchanged. Paths and order are those of the server: sorted, and no brackets around keys. Source:
`k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go`.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.kthena.groups import NETWORKING, REGISTRY, SERVING
from apiserver.kinds.registry import KINDS, find_kind, find_version
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.metadata import MEMBERS, OWNER_MEMBERS, metadata_errors
from apiserver.schema.model import SchemaNode
from apiserver.schema.paths import FieldPath
from controller.commands.check.result import Defect
from controller.commands.check.tree import Tree

_OF_OTHERS: Final[Mapping[str, frozenset[str]]] = {
    "inference.networking.x-k8s.io": frozenset(
        ["InferenceModel", "InferenceModelRewrite", "InferencePool", "InferencePoolImport"]
    ),
    SERVING: frozenset(["ExternalModelProvider"]),
}
"""Kinds that other projects define in a group of ours."""
_MIGRATION: Final = "rewrite it with stowplan migrate --to stowplan"
_LATER: Final[Mapping[tuple[str, str], str]] = {
    ("workload.serving.volcano.sh", "ModelBooster"): (
        f"it is the later shape of Model of {REGISTRY}/v1alpha1, with one backend of fixed replicas:"
        f" {_MIGRATION}, or leave this to Kthena's controller"
    ),
    ("workload.serving.volcano.sh", "AutoscalingPolicy"): (
        f"it is an AutoscalingPolicy and an AutoscalingPolicyBinding of {REGISTRY}/v1alpha1 in one object."
        " Split it with stowplan migrate --to stowplan"
    ),
    ("workload.serving.volcano.sh", "AutoscalingPolicyBinding"): (
        f"it is the later shape of AutoscalingPolicyBinding of {REGISTRY}/v1alpha1, where homogeneousTarget"
        " is scalingConfiguration, and heterogeneousTarget is optimizerConfiguration: write that one"
    ),
    (SERVING, "ExternalModelProvider"): "Stowplan does not read it; only Kthena's router does",
    ("llm-d.ai", "InferenceObjective"): (
        "it is the later shape of InferenceObjective of inference.networking.x-k8s.io/v1alpha2, which selects"
        f" several pools; Stowplan supports the one with a poolRef: {_MIGRATION}"
    ),
    ("serving.kserve.io", "LLMInferenceService"): (
        "KServe makes a HorizontalPodAutoscaler or ScaledObject for it; check that one, which Stowplan plans"
        " if it is annotated"
    ),
}
"""Kinds related to ours by group and name: what each of them is, and what to do."""
_RELATED: Final[Mapping[str, tuple[str, ...]]] = {
    "workload.serving.volcano.sh": (REGISTRY,),
    "serving.volcano.sh": (NETWORKING, SERVING, REGISTRY),
    "llm-d.ai": ("llmd.ai", "inference.networking.x-k8s.io"),
}
"""Groups to which other releases of the same projects moved kinds of ours, with our groups. Their subgroups
count, too."""
_LEAST_SIMILARITY: Final = 0.75
"""The similarity from which a name is a typing error: ModelServr for ModelServer is one, ModelInfer is
not."""
_LEAST_SIMILARITY_OF_GROUPS: Final = 0.88
"""The same for API groups: llm-d.ai is one, workload.serving.volcano.sh, a group of Kthena, is not."""
_MOST_SUGGESTIONS: Final = 2
_STANDARD: Final = frozenset({"apiVersion", "kind", "metadata"})


def mismatch(api_version: str, kind: str) -> FieldError | None:
    """Return what is wrong with the kind or version of an object, in kubectl's words; then what is served.

    Returns None for a kind that is served, and for one that is unrelated. Wording:
    `k8s.io/apimachinery/pkg/api/meta/errors.go`, `NoKindMatchError`.
    """
    group = api_version.rpartition("/")[0]
    if find_version(api_version, kind) is not None or kind.removesuffix("List") in _OF_OTHERS.get(group, ()):
        return None
    no_matches = f'no matches for kind "{kind}" in version "{api_version}"'
    if (known := find_kind(group, kind)) is not None:
        served = ", ".join(f"{group}/{version.name}" for version in known.versions)
        return _no_match("apiVersion", f"{no_matches}: the served versions are {served}")
    here = [name for version, name in _served_kinds() if version == api_version]
    if not here:
        meant = _similar_versions(group, kind)
        return _no_match("apiVersion", f"{no_matches}: did you mean {meant}?") if meant else None
    similar = _similar_kinds(api_version, kind)
    advice = f"did you mean {' or '.join(similar)}?" if similar else f"the served kinds are {', '.join(here)}"
    return _no_match("kind", f"{no_matches}: {advice}")


def _no_match(field: str, message: str) -> FieldError:
    return FieldError(FieldPath().child(field), "NoMatch", message)


def _similar_versions(group: str, kind: str) -> str:
    """Return the versions of a kind of our name whose group is almost the given one, such as llm-d.ai.

    Other projects have a Model, too: the group must be similar.
    """
    groups = {known.group: known for known in KINDS if known.kind == kind}
    meant = difflib.get_close_matches(group.casefold(), groups, 1, _LEAST_SIMILARITY_OF_GROUPS)
    return " or ".join(f"{name}/{version.name}" for name in meant for version in groups[name].versions)


def _similar_kinds(api_version: str, kind: str) -> list[str]:
    """Return the kind of that name in another case or group; otherwise those with similar names."""
    # Of two kinds of the same name, the one in this version counts.
    served = sorted(_served_kinds(), key=lambda item: item[0] == api_version)
    places = {name.casefold(): (version, name) for version, name in served}
    folded = kind.casefold()
    names = (
        [folded]
        if folded in places
        else difflib.get_close_matches(folded, places, _MOST_SUGGESTIONS, _LEAST_SIMILARITY)
    )
    return [
        name if version == api_version else f"{name} of {version}"
        for version, name in (places[name] for name in names)
    ]


def _served_kinds() -> list[tuple[str, str]]:
    return [(f"{kind.group}/{version.name}", kind.kind) for kind in KINDS for version in kind.versions]


def other_release(api_version: str, kind: str) -> str:
    """Return what an object of a later release is, and what to do; empty if nothing is known about it."""
    group = api_version.rpartition("/")[0]
    if (group, kind) in _LATER:
        return _LATER[group, kind]
    parts = group.split(".")
    names = (".".join(parts[place:]) for place in range(len(parts)))
    ours = next((_RELATED[name] for name in names if name in _RELATED), ())
    if not ours:
        return ""
    return f"this release supports the kinds of {' and '.join(ours)}, not those of {group}"


def namespace_argument(text: str) -> str:
    """Return a namespace given on the command line. Raises ArgumentTypeError."""
    for wrong in metadata_errors({"name": "any", "namespace": text}):
        raise argparse.ArgumentTypeError(wrong.error.body)
    return text


def with_namespace(value: Json, namespace: str) -> Json:
    """Return an object in the given namespace, as kubectl sets it, unless it has one of its own."""
    metadata = value.get("metadata")
    if not namespace or not isinstance(metadata, dict | None) or (metadata or {}).get("namespace"):
        return value
    return value | {"metadata": (metadata or {}) | {"namespace": namespace}}


def misplacement(own: str, namespace: str) -> Iterator[FieldError]:
    """Yield kubectl's error for an object in another than the given namespace."""
    if own not in {"", namespace} and namespace:
        message = (
            f'the namespace from the provided object "{own}" does not match the namespace "{namespace}". You'
            f" must pass '--namespace={own}' to perform this operation."
        )
        yield FieldError(FieldPath().child("metadata", "namespace"), "NamespaceMismatch", message)


def strict_errors(tree: Tree, root: SchemaNode) -> list[Defect]:
    """Return the errors of strict decoding of an object: duplicates first, then unknown fields."""
    declared = {name: item for name, item in tree.value.items() if name not in _STANDARD}
    unknown = (
        *sorted(_unknown_metadata(tree.value), key=str),
        *sorted(_unknown(declared, root, FieldPath()), key=str),
    )
    return [*duplicates(tree), *(_strict_error("unknown", path, tree.line_of(path)) for path in unknown)]


def duplicates(tree: Tree) -> list[Defect]:
    """Return the fields that occur more than once, each by its second line."""
    second: dict[FieldPath, int] = {}
    for path, line in sorted(_repetitions(tree), key=lambda repetition: repetition[1]):
        second.setdefault(path, line)
    return [_strict_error("duplicate", path, line) for path, line in second.items()]


def _strict_error(word: str, path: FieldPath, line: int) -> Defect:
    return Defect(
        field=str(path), reason=f"{word.capitalize()}Field", message=f'{word} field "{path}"', line=line
    )


def _repetitions(tree: Tree) -> Iterator[tuple[FieldPath, int]]:
    waiting = [(tree.value, FieldPath())]
    while waiting:
        value, path = waiting.pop()
        yield from ((path.child(name), line) for name, line in tree.marks_of(value).repeated)
        waiting += [(item, inner) for item, inner in _children(value, path) if isinstance(item, dict | list)]


def _children(value: JsonValue, path: FieldPath) -> Iterator[tuple[JsonValue, FieldPath]]:
    if isinstance(value, dict):
        yield from ((item, path.child(name)) for name, item in value.items())
    elif isinstance(value, list):
        yield from ((item, path.index(position)) for position, item in enumerate(value))


def _unknown_metadata(value: Json) -> Iterator[FieldPath]:
    metadata, path = value.get("metadata"), FieldPath().child("metadata")
    if not isinstance(metadata, dict):
        return
    yield from (path.child(name) for name in metadata if name not in MEMBERS)
    owners = metadata.get("ownerReferences")
    for position, owner in enumerate(owners if isinstance(owners, list) else []):
        here = path.child("ownerReferences").index(position)
        names = owner if isinstance(owner, dict) else ()
        yield from (here.child(name) for name in names if name not in OWNER_MEMBERS)


def _unknown(value: JsonValue, node: SchemaNode | None, path: FieldPath) -> Iterator[FieldPath]:
    if node is not None and (node.type == "any" or node.keywords.get("x-kubernetes-preserve-unknown-fields")):
        return
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _unknown(item, node.items if node else None, path.index(position))
    elif isinstance(value, dict):
        for name, item in value.items():
            prop = node.property(name) if node else None
            if prop is not None:
                yield from _unknown(item, prop.node, path.child(name))
            elif node is not None and node.values is not None:
                yield from _unknown(item, node.values, path.child(name))
            else:
                yield path.child(name)
