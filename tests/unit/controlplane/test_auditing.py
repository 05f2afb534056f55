"""Detection of stale writes in the audit log: writes after another process has acquired the Lease."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hack.controlplane.auditing import AuditLog, stale_writes

ACCOUNT: Final = "system:serviceaccount:stowplan-system:stowplan-controller"
LEASE: Final = "stowplan-controller"


def line(who: str, what: str, *, at: int, code: int = 200, verb: str = "patch", by: str = ACCOUNT) -> str:
    """Return a line of the log: received at a given second, answered half a second later."""
    value: dict[str, Any] = {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": by, "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={who}"]}},
        "objectRef": {"resource": what, "name": LEASE if what == "leases" else f"written-at-{at}"},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{at:02}.000000Z",
        "stageTimestamp": f"2026-01-01T00:00:{at:02}.500000Z",
    }
    return json.dumps(value)


CASES: Final[dict[str, tuple[list[str], list[int]]]] = {
    "the holder writes": ([line("a", "leases", at=1), line("a", "statuses", at=2)], []),
    "a former holder writes after another process acquired the lease": (
        [
            line("a", "leases", at=1),
            line("a", "statuses", at=2),
            line("b", "leases", at=20),
            line("a", "statuses", at=21),
            line("b", "statuses", at=22),
        ],
        [21],
    ),
    "a write of a former holder is rejected": (
        [line("a", "leases", at=1), line("b", "leases", at=20), line("a", "statuses", at=21, code=409)],
        [],
    ),
    "a former holder reads": (
        [line("a", "leases", at=1), line("b", "leases", at=20), line("a", "pods", at=21, verb="list")],
        [],
    ),
    "a rejected attempt to renew the lease does not change the holder": (
        [
            line("a", "leases", at=1),
            line("b", "leases", at=20),
            line("a", "leases", at=21, code=409),
            line("b", "statuses", at=22),
        ],
        [],
    ),
    "the lease is acquired again": (
        [
            line("a", "leases", at=1),
            line("b", "leases", at=20),
            line("a", "leases", at=40),
            line("a", "statuses", at=41),
            line("b", "statuses", at=42),
        ],
        [42],
    ),
    "a process that never held the lease writes": (
        [line("a", "leases", at=1), line("c", "statuses", at=2)],
        [2],
    ),
    "another account writes": (
        [line("a", "leases", at=1), line("x", "statuses", at=2, by="somebody")],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_stale_writes_are_found(tmp_path: Path, case: str) -> None:
    """The process is identified by its token, and the time is that of receiving the request."""
    lines, stale = CASES[case]
    (tmp_path / "audit.log").write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")

    found = stale_writes(AuditLog(tmp_path / "audit.log").since_of(account=ACCOUNT), lease=LEASE)

    assert [item.object_ref.name for item in found] == [f"written-at-{at}" for at in stale]
