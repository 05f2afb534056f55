"""The InferencePool of a ModelServer, with notes about fields that a pool cannot express.

The pool is owned by the ModelRoutes that target the server, not by the server, and is deleted with the last
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from apiserver.kinds.inference.inferenceobjective import POOL_KIND
from apiserver.schema.json import Json
from controller.expansion.parts import ENGINE_LABEL, VLLM, Note, made_metadata
from controller.gateways.annotations import picker_reference
from controller.gateways.installed import API_VERSIONS, POOLS

_MOST_LABELS: Final = 64


def pool_of(server: Json) -> tuple[Json | None, list[Note]]:
    """Return the InferencePool of a valid ModelServer, or None and a note if there can be none."""
    spec = server["spec"]
    labels, notes = _labels(spec["workloadSelector"])
    if "workloadPort" not in spec:
        notes.append(Note(path="spec.workloadPort", text="a pool needs the port of its pods", prevents=True))
    picker, unread = picker_reference(server)
    notes += unread
    notes += _unsaid(server)
    if any(note.prevents for note in notes):
        return None, notes
    pool = {
        "apiVersion": API_VERSIONS[POOLS],
        "kind": POOL_KIND,
        "metadata": made_metadata(server["metadata"], server["metadata"]["name"], {}),
        "spec": {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": spec["workloadPort"]["port"]}],
            "endpointPickerRef": picker,
        },
    }
    return pool, notes


def shared_by(pool: Json, routes: Iterable[Json]) -> Json:
    """Return a pool with some ModelRoutes as its owners."""
    owners = [
        {
            "apiVersion": route["apiVersion"],
            "kind": route["kind"],
            "name": route["metadata"]["name"],
            "uid": route["metadata"]["uid"],
        }
        for route in routes
    ]
    return {**pool, "metadata": {**pool["metadata"], "ownerReferences": owners}}


def _labels(selector: Json) -> tuple[Json, list[Note]]:
    """Return the labels of the pods that receive requests, and notes about disaggregated prefill."""
    shared, group = selector.get("matchLabels") or {}, selector.get("pdGroup")
    if group is None:
        return shared, []
    path = "spec.workloadSelector.pdGroup"
    decode = group["decodeLabels"]
    text = (
        "a Gateway does not pair prefill with decode pods: requests go to decode pods, which do all the work"
    )
    notes = [Note(path=path, text=text)]
    labels = {**shared, **decode}
    if any(shared.get(name, value) != value for name, value in decode.items()):
        text = "select no pod: matchLabels has another value for one of the keys"
        notes.append(Note(path=f"{path}.decodeLabels", text=text, prevents=True))
    elif len(labels) > _MOST_LABELS:
        text = f"with matchLabels they are {len(labels)} labels: a pool selects by {_MOST_LABELS} at most"
        notes.append(Note(path=f"{path}.decodeLabels", text=text, prevents=True))
    return labels, notes


def _unsaid(server: Json) -> Iterator[Note]:
    spec, labels = server["spec"], server["metadata"].get("labels") or {}
    engine = spec["inferenceEngine"]
    if engine != VLLM and labels.get(ENGINE_LABEL) != engine.lower():
        label = f"{ENGINE_LABEL}={engine.lower()}"
        text = f"a pool does not say it: give its pods, and this ModelServer, the label {label}"
        yield Note(path="spec.inferenceEngine", text=text)
    if spec.get("workloadPort", {}).get("protocol") == "https":
        yield Note(path="spec.workloadPort.protocol", text="requests to the pods of a pool are http")
    if "kvConnector" in spec and "pdGroup" in spec["workloadSelector"]:
        yield Note(path="spec.kvConnector", text="a Gateway does not hand over KV caches")
