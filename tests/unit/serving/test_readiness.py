"""What the kubelet is told."""

from __future__ import annotations

import pytest

from apiserver.serving.readiness import Readiness


def test_ready_while_no_check_objects() -> None:
    """Checks are asked anew each time; the first objection is enough."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("caches", lambda: reason[0])
    assert readiness.verdict().is_ready
    reason.reverse()

    assert not readiness.verdict().is_ready


def test_text() -> None:
    """The words are those of Kubernetes' own endpoints, a line per check when asked for or when one fails."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("certificate", lambda: None)
    readiness.add("caches", lambda: reason[0])
    assert readiness.verdict().text(verbose=False) == "ok"
    assert readiness.verdict().text(verbose=True).splitlines() == [
        "[+]certificate ok",
        "[+]caches ok",
        "[+]shutdown ok",
        "readyz check passed",
    ]
    reason.reverse()

    assert readiness.verdict().text(verbose=False).splitlines() == [
        "[+]certificate ok",
        "[-]caches failed: not synced",
        "[+]shutdown ok",
        "readyz check failed",
    ]


def test_draining_outweighs_all_checks() -> None:
    """Once the process drains it stays not ready."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    readiness.drain()

    assert readiness.is_draining
    assert not readiness.verdict().is_ready


def test_names_are_unique() -> None:
    """Two checks of one name would hide each other."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    with pytest.raises(ValueError, match="already a readiness check 'caches'"):
        readiness.add("caches", lambda: None)
