"""Length limits on the names of a Model and its backends, from which other objects are named.

The longest name is that of a Service, which is a DNS label: by RFC 1035, at most 63 characters that begin
with a letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Rule, WebhookOnly

_LONGEST: Final = 63
"""The maximum number of characters of a DNS label, and of a label value."""

_PARTED: Final = "Disaggregated"
_PARTS: Final = ("-prefill", "-decode")
_LONGEST_ROLE: Final = _PARTS[0]
_REVISION_CHARACTERS: Final = 11
"""The number of characters that a StatefulSet appends to its name in a label of its pods: a dash and a hash.
Source: `k8s.io/kubernetes/pkg/controller/history/controller_history.go`."""

_LENGTHS: Final = (
    f"MODEL-BACKEND, or MODEL-BACKEND{_LONGEST_ROLE} for a disaggregated backend, has at most {_LONGEST}"
    " characters."
)
_LETTER: Final = "must begin with a letter: Services are called by it"


def _service_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for the name of a Model, and one for each backend whose Service would be too long."""
    del path
    faults: list[FieldError] = []
    model = _model_name(value)
    if model and not "a" <= model[0] <= "z":
        faults.append(errors.invalid(FieldPath().child("metadata", "name"), model, _LETTER))
    for position, backend in enumerate(_backends(value)):
        name = _service_name(model, backend)
        if len(name) > _LONGEST:
            faults.append(_too_long(position, backend, f"its Service would be named {name}", len(name)))
    return faults


def _spanning_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each backend whose engines span nodes and whose pod labels would be too long.

    All but the first pod of an engine belong to a StatefulSet with the name of the first pod, and have a
    label with the name of its revision. Source: `sigs.k8s.io/lws/pkg/controllers/pod_controller.go`.
    """
    del path
    backends = _backends(value)
    if not [1 for each in backends for worker in each.get("workers", ()) if worker.get("pods", 1) > 1]:
        return ()
    faults: list[FieldError] = []
    for position, backend in enumerate(backends):
        engines = [
            backend.get("maxReplicas", 1) * worker.get("replicas", 1)
            for worker in backend.get("workers", ())
            if worker.get("pods", 1) > 1
        ]
        if not engines or len(name := _service_name(_model_name(value), backend)) > _LONGEST:
            continue
        last = f"{name}-{max(engines) - 1:.0f}"  # the schema rejects what is not a number
        if (length := len(last) + _REVISION_CHARACTERS) > _LONGEST:
            faults.append(
                _too_long(position, backend, f"a label of its pods would be {last}-REVISION", length)
            )
    return faults


def _own_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each backend with a workload of the same name as one of an earlier backend."""
    del path
    backends = _backends(value)
    if not [1 for backend in backends if backend.get("name", "").endswith(_PARTS)]:
        return ()
    faults: list[FieldError] = []
    model = _model_name(value)
    owners: dict[str, str] = {}
    for position, backend in enumerate(backends):
        name = str(backend.get("name", ""))
        for role in _PARTS if _is_parted(backend) else ("",):
            other = owners.setdefault(f"{name}{role}", name)
            if other != name:
                text = f"backend {other} has a workload {model}-{name}{role} as well: rename one of both"
                where = FieldPath().child("spec", "backends").index(position).child("name")
                faults.append(errors.invalid(where, name, text))
    return faults


_CEL_ROLE: Final = f"(item.type.endsWith('{_PARTED}') ? {len(_LONGEST_ROLE)} : 0)"
_CEL_LENGTH: Final = f"size(self.metadata.name) + 1 + size(item.name) + {_CEL_ROLE}"

NAMES: Final = (
    # The API server checks this only when a Model is created. Stored ones stay editable, and a CEL rule that
    # compared the backends of an update with the stored ones would exceed its cost budget: the webhook does.
    Rule(
        _service_names,
        f"The name of a Model begins with a letter. Names of its Services are limited: {_LENGTHS}",
        cel=[
            CelRule(
                rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]')",
                message=f"metadata.name {_LETTER}",
                reads_past=True,
            ),
            CelRule(
                rule=f"oldSelf.hasValue() || self.spec.backends.all(item, {_CEL_LENGTH} <= {_LONGEST})",
                message=f"`name` makes the name of a Service too long: {_LENGTHS}",
                field_name="spec.backends",
                reads_past=True,
            ),
        ],
    ),
    WebhookOnly(
        _spanning_names,
        "If an engine of a backend has several `pods`, a dash, the number of the backend's last engine and"
        f" {_REVISION_CHARACTERS} more characters count towards this limit.",
    ),
    WebhookOnly(
        _own_names,
        "No two workloads of a Model have the same name: if a disaggregated backend is named `a`, no other"
        f" one is named {' or '.join(f'`a{part}`' for part in _PARTS)}.",
    ),
)
"""The rules of a Model for names that are derived from its own."""


def _model_name(value: Json) -> str:
    """Return the name of a Model; empty if the API server has yet to generate one."""
    return str((value.get("metadata") or {}).get("name") or "")


def _backends(value: Json) -> Sequence[Json]:
    backends: Sequence[Json] = value.get("spec", {}).get("backends", [])
    return backends


def _service_name(model: str, backend: Json) -> str:
    """Return the longest Service name of a backend."""
    role = _LONGEST_ROLE if _is_parted(backend) else ""
    return f"{model}-{backend.get('name', '')}{role}".replace(".", "-")


def _is_parted(backend: Json) -> bool:
    """Tell whether a backend runs prefill and decode separately."""
    return str(backend.get("type", "")).endswith(_PARTED)


def _too_long(position: int, backend: Json, why: str, length: int) -> FieldError:
    path = FieldPath().child("spec", "backends").index(position).child("name")
    text = f"{why}, which has {length} characters of at most {_LONGEST}: shorten it, or metadata.name"
    return errors.invalid(path, backend.get("name", ""), text)
