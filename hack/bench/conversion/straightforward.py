"""The straightforward server: `json`, and hand-written conversion of dicts, for exactly the existing fields.

It is a typical first implementation, done properly: no copy is deeper than the change requires, and nothing
is deliberately slow. Like our server, it keeps fields that the requested version lacks in an annotation,
together with the values derived for them. Converting back restores an identifier or a missing scale target
only if the derived value is unchanged, and a profile with the current values of its selected entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import msgspec

from apiserver.schema.json import Json
from hack.bench.servers import Answerer
from hack.calling.conversion_reviews import PATH

GROUP: Final = "llmd.ai"
SPOKE: Final = f"{GROUP}/v1alpha1"
HUB: Final = f"{GROUP}/v1alpha2"
ANNOTATION: Final = f"{GROUP}/kept"
TRIVIAL_PATH: Final = "/trivial"

_ACCELERATOR_LABEL: Final = "inference.optimization/acceleratorName"
_LEGACY: Final = ("accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
_PROFILED: Final = ("accelerator", "acceleratorCount", "variantProfile")


def answers() -> Mapping[str, Answerer]:
    """Return the handlers of reviews, by path."""
    return {PATH: answer, TRIVIAL_PATH: _only_api_version}


def _only_api_version(body: bytes) -> bytes:
    """Change only `apiVersion`, which is the minimum cost of a converter.

    The API server does not validate objects that it reads, so it accepts responses that are invalid in the
    requested version.
    """
    request = msgspec.json.decode(body)["request"]
    version = {"apiVersion": request["desiredAPIVersion"]}
    values = [value | version for value in request["objects"]]
    return msgspec.json.encode(_review(request["uid"], values))


def answer(body: bytes) -> bytes:
    """Return the response to a review, from bytes to bytes."""
    return json.dumps(respond(json.loads(body))).encode()


def respond(review: Json) -> Json:
    """Return the ConversionReview with the response."""
    request = review["request"]
    to_hub = request["desiredAPIVersion"] == HUB
    values = [_to_hub(value) if to_hub else _to_spoke(value) for value in request["objects"]]
    return _review(request["uid"], values)


def _review(uid: str, values: list[Json]) -> Json:
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": values}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


def _to_hub(value: Json) -> Json:
    value, kept = _take_annotation(value)
    value["apiVersion"] = HUB
    spec = value["spec"] = dict(value["spec"])
    lost: Json = {}
    if "variantID" in spec:
        lost["variantID"] = {"value": spec.pop("variantID"), "derived": _identifier(spec)}
    if "modelProfile" in spec:
        lost["modelProfile"] = _without_profile(value, spec)
    if "scaleTargetRef" not in spec:
        spec["scaleTargetRef"] = _implied_target(value["metadata"])
        lost["scaleTargetRef"] = {"derived": spec["scaleTargetRef"]}
    if "decision" in kept and "decision" not in value.get("status", {}):
        value["status"] = value.get("status", {}) | {"decision": kept["decision"]["value"]}
    return _with_annotation(value, lost)


def _without_profile(value: Json, spec: Json) -> Json:
    profile = spec.pop("modelProfile")
    entries = profile["accelerators"]
    label = value["metadata"].get("labels", {}).get(_ACCELERATOR_LABEL)
    position = next((place for place, entry in enumerate(entries) if entry["acc"] == label), 0)
    entry = entries[position]
    spec["accelerator"], spec["acceleratorCount"] = entry["acc"], entry["accCount"]
    spec["variantProfile"] = {"perfParms": entry["perfParms"], "maxBatchSize": entry["maxBatchSize"]}
    return {"value": profile, "position": position}


def _to_spoke(value: Json) -> Json:
    value, kept = _take_annotation(value)
    value["apiVersion"] = SPOKE
    spec = value["spec"] = dict(value["spec"])
    lost: Json = {}
    if "decision" in value.get("status", {}):
        status = value["status"] = dict(value["status"])
        lost["decision"] = {"value": status.pop("decision")}
    if "modelProfile" in kept and all(name in spec for name in _PROFILED):
        spec["modelProfile"] = _with_profile(kept["modelProfile"], spec)
    elif all(name in spec for name in _LEGACY):
        identifier = _identifier(spec)
        was = kept.get("variantID", {})
        spec["variantID"] = was["value"] if was.get("derived") == identifier else identifier
    else:
        lost |= {name: {"value": spec.pop(name)} for name in _LEGACY if name in spec}
    if "scaleTargetRef" in kept and spec["scaleTargetRef"] == kept["scaleTargetRef"]["derived"]:
        del spec["scaleTargetRef"]
    return _with_annotation(value, lost)


def _with_profile(kept: Json, spec: Json) -> Json:
    entries, position = list(kept["value"]["accelerators"]), kept["position"]
    today = {"acc": spec.pop("accelerator"), "accCount": spec.pop("acceleratorCount")}
    entries[position] = entries[position] | today | spec.pop("variantProfile")
    profile: Json = kept["value"] | {"accelerators": entries}
    return profile


def _identifier(spec: Json) -> str:
    return f"{spec['modelID']}-{spec['accelerator']}-{spec['acceleratorCount']}"


def _implied_target(metadata: Json) -> Json:
    owners = (owner for owner in metadata.get("ownerReferences", ()) if owner.get("controller"))
    name = next((owner["name"] for owner in owners if owner["kind"] == "Deployment"), metadata["name"])
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _take_annotation(value: Json) -> tuple[Json, Json]:
    """Return a shallow copy without the annotation, and the annotation's content."""
    annotations = value["metadata"].get("annotations", {})
    if ANNOTATION not in annotations:
        return dict(value), {}
    kept: Json = json.loads(annotations[ANNOTATION])
    others = {key: text for key, text in annotations.items() if key != ANNOTATION}
    metadata = value["metadata"] | {"annotations": others}
    if not others:
        del metadata["annotations"]
    return value | {"metadata": metadata}, kept


def _with_annotation(value: Json, lost: Json) -> Json:
    if lost:
        annotations = value["metadata"].get("annotations", {}) | {ANNOTATION: json.dumps(lost)}
        value["metadata"] = value["metadata"] | {"annotations": annotations}
    return value
