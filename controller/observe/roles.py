"""Roles of engines that serve requests together: one pod computes the prompt, another generates the answer.

Each request needs both, so pods of one role do not replace those of the other. The variants of each role are
planned like a model of their own.
"""

from __future__ import annotations

import re
from typing import Final

from apiserver.schema.json import Json
from controller.observe.targets import Target
from controller.planning.snapshot import DECODE, PREFILL

ROLE_LABEL: Final = "llm-d.ai/role"
"""The label of pods with their role, of llm-d and KServe."""

_LABELS: Final = (ROLE_LABEL, "stowplan.dev/role", "modelserving.volcano.sh/role")
"""Labels with the role, by llm-d, by Models of Stowplan, and by Kthena."""

_TRANSFER: Final = re.compile(r"kv_role\W{1,8}(kv_producer|kv_consumer)\b")
"""The role among vLLM's settings for the transfer of KV caches; `kv_both` is no role."""

_BY_TRANSFER: Final = {"kv_producer": PREFILL, "kv_consumer": DECODE}


def role_of(target: Target) -> str:
    """Return the role of a target's pods; empty if they serve requests alone, or name another role."""
    named = (labels[name] for name in _LABELS for labels in target.labels if labels.get(name))
    role = next(named, "") or _role_by_transfer(target.engine_spec)
    return role if role in (PREFILL, DECODE) else ""


def planned_model(model_id: str, role: str) -> str:
    """Return the model as it is planned: its ID, with the role of the pods in parentheses if there is one."""
    return f"{model_id} ({role})" if role else model_id


def _role_by_transfer(pod_spec: Json) -> str:
    for container in pod_spec.get("containers") or []:
        text = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
        if match := _TRANSFER.search(text):
            return _BY_TRANSFER[match[1]]
    return ""
