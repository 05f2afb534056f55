"""Readiness checks and their response to the kubelet."""

from __future__ import annotations

import pytest

from apiserver.serving.health import Readiness


def test_the_process_is_ready_if_no_check_fails() -> None:
    """Checks are run again each time, and one failed check is enough."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("caches", lambda: reason[0])
    assert readiness.report().is_ready
    reason.reverse()

    assert not readiness.report().is_ready


def test_the_response_has_the_format_of_kubernetes_endpoints() -> None:
    """It lists all checks if it is verbose or a check fails."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("certificate", lambda: None)
    readiness.add("caches", lambda: reason[0])
    assert readiness.report().text(verbose=False) == "ok"
    assert readiness.report().text(verbose=True).splitlines() == [
        "[+]certificate ok",
        "[+]caches ok",
        "[+]shutdown ok",
        "readyz check passed",
    ]
    reason.reverse()

    assert readiness.report().text(verbose=False).splitlines() == [
        "[+]certificate ok",
        "[-]caches failed: not synced",
        "[+]shutdown ok",
        "readyz check failed",
    ]


def test_a_draining_process_is_never_ready() -> None:
    """The other checks do not matter."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    readiness.drain()

    assert readiness.is_draining
    assert not readiness.report().is_ready


def test_names_of_checks_must_be_unique() -> None:
    """Otherwise one check would hide another of the same name."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    with pytest.raises(ValueError, match="already a readiness check 'caches'"):
        readiness.add("caches", lambda: None)
