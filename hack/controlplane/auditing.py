"""Requests served by kube-apiserver, from its audit log, and its calls of webhooks, from its metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

POLICY_FILE = "audit-policy.json"
LOG_FILE = "audit.log"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_READING = frozenset({"get", "list", "watch"})
_FIRST_ERROR = 400
POLICY = b"""{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "rules": [{"level": "Metadata"}], "omitStages": ["RequestReceived"]
}"""
"""Audit policy that logs metadata without bodies."""


class _Reference(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct, frozen=True):
    code: int = 0


class AuditedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of one log line that are read; timestamps are strings that sort chronologically."""

    verb: str
    stage: str
    user_agent: str = ""
    object_ref: _Reference = _Reference()
    user: _User = _User()
    response_status: _Status = _Status()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""

    @property
    def credential(self) -> tuple[str, ...]:
        """Return the id of the process's token; every process is issued its own."""
        return self.user.extra.get(_CREDENTIAL, ())

    @property
    def has_written(self) -> bool:
        """Tell whether the request was a successful write."""
        return self.verb not in _READING and 0 < self.response_status.code < _FIRST_ERROR

    @property
    def about(self) -> str:
        """Return the verb and resource, such as `patch variantautoscalings/status`."""
        reference = self.object_ref
        what = "/".join(filter(None, (reference.resource, reference.subresource)))
        return f"{self.verb} {what}"


@dataclass(slots=True)
class AuditLog:
    """Reads the log incrementally."""

    path: Path
    offset: int = 0

    def since(self, *, user_agent: str) -> Sequence[AuditedRequest]:
        """Return the new requests of one user agent: completed ones, and watches that began."""
        return [item for item in self._read() if item.user_agent == user_agent and _counts(item)]

    def since_of(self, *, account: str) -> Sequence[AuditedRequest]:
        """Return the new requests of one service account: completed ones, and watches that began."""
        return [item for item in self._read() if item.user.username == account and _counts(item)]

    def _read(self) -> Iterator[AuditedRequest]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            whole = file.read()
        end = whole.rfind(b"\n") + 1
        self.offset += end
        return (msgspec.json.decode(line, type=AuditedRequest) for line in whole[:end].splitlines())


def stale_writes(requests: Iterable[AuditedRequest], *, lease: str) -> list[AuditedRequest]:
    """Return the writes of processes after another process of the same account had taken the Lease.

    The time of a write is when it was received; the time of a takeover is when it was answered.
    """
    writes = [item for item in requests if item.has_written]
    takeovers: list[AuditedRequest] = []
    for item in sorted(writes, key=lambda item: item.stage_timestamp):
        if _is_of(item, lease) and (not takeovers or takeovers[-1].credential != item.credential):
            takeovers.append(item)
    return [item for item in writes if not _is_of(item, lease) and _is_stale(item, takeovers)]


def _is_of(item: AuditedRequest, lease: str) -> bool:
    return (item.object_ref.resource, item.object_ref.name) == ("leases", lease)


def _is_stale(write: AuditedRequest, takeovers: Sequence[AuditedRequest]) -> bool:
    received = write.request_received_timestamp
    before = bisect_left(takeovers, received, key=lambda item: item.stage_timestamp)
    if before and takeovers[before - 1].credential == write.credential:
        return False
    # A new holder may write before the log records the response to its takeover.
    following = takeovers[before : before + 1]
    return not (
        following
        and following[0].credential == write.credential
        and following[0].request_received_timestamp < received
    )


def _counts(item: AuditedRequest) -> bool:
    return item.stage == ("ResponseStarted" if item.verb == "watch" else "ResponseComplete")


def conversions(exposition: str) -> tuple[int, float, int]:
    """Return the number of conversion calls, their total seconds, and the number of failed ones."""
    name = "apiserver_crd_conversion_webhook_duration_seconds"
    lines = "\n".join(line for line in exposition.splitlines() if line.startswith(name))
    totals: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(f"{lines}\n"):
        for sample in family.samples:
            totals[sample.name.removeprefix(name)] += sample.value
            if sample.labels.get("succeeded") == "false" and sample.name.endswith("_count"):
                totals["failed"] += sample.value
    return round(totals["_count"]), totals["_sum"], round(totals["failed"])
