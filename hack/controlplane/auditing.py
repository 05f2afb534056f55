"""Every request that kube-apiserver served, by its own audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

POLICY_FILE = "audit-policy.json"
LOG_FILE = "audit.log"
POLICY = b"""{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "rules": [{"level": "Metadata"}], "omitStages": ["RequestReceived"]
}"""
"""Without bodies."""


class _Reference(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the log, as far as it is read."""

    verb: str
    stage: str
    user_agent: str = ""
    object_ref: _Reference = _Reference()

    @property
    def about(self) -> str:
        """Return what was asked, such as `patch variantautoscalings/status`."""
        reference = self.object_ref
        what = "/".join(filter(None, (reference.resource, reference.subresource)))
        return f"{self.verb} {what}"


@dataclass(slots=True)
class AuditLog:
    """Reads the log on from where it was read last."""

    path: Path
    offset: int = 0

    def since(self, *, user_agent: str) -> Sequence[Request]:
        """Return what one program asked since the last look: answered requests, and watches that began."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            whole = file.read()
        end = whole.rfind(b"\n") + 1
        self.offset += end
        found = (msgspec.json.decode(line, type=Request) for line in whole[:end].splitlines())
        return [item for item in found if item.user_agent == user_agent and _counts(item)]


def _counts(item: Request) -> bool:
    return item.stage == ("ResponseStarted" if item.verb == "watch" else "ResponseComplete")
