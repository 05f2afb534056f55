"""The demo at a high speed, with a component that is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.controlplane

_ROOT = Path(__file__).parents[2]


def test_without_the_controller_the_demo_fails_and_reports_the_failed_steps() -> None:
    """Without decisions nothing is scaled; the invalid manifest is rejected all the same."""
    command = [sys.executable, "-m", "hack.demo", "--plain", "--speed", "90", "--without", "controller"]

    finished = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=1200, check=False)

    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert "stowplan-controller is stopped and not restarted" in finished.stdout
    assert "ok   an invalid manifest is refused" in finished.stdout
    assert "FAIL a surge scales up" in finished.stdout
    assert "FAIL in a shortage, the lower priority is preempted" in finished.stdout
    assert "FAIL the premium model is served in time, except while engines start" in finished.stdout
    assert "Stowplan, meta/llama-3.1-70b missed" in finished.stdout
    assert "plain HPA on every variant: 24, meta/llama-3.1-70b missed" in finished.stdout
