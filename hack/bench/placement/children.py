"""One process per measurement, on a core of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from hack.bench.cores import Cores
from hack.bench.placement.outcome import Job, Outcome

_PATIENCE_SECONDS = 300.0
"""For generating, importing and judging, beside the time that solving may take."""

_MOST_STEPS = 100


def run(job: Job, cores: Cores) -> Outcome:
    """Measure in a process of its own; what goes wrong there is the outcome."""
    command = [sys.executable, "-m", "hack.bench.placement.child", json.dumps(job.as_json())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        cores.pin_server(process.pid)
        try:
            printed, complaint = process.communicate(timeout=_patience_seconds(job))
        except subprocess.TimeoutExpired:
            process.kill()
            return _failed(job, f"did not end within {_patience_seconds(job):.0f} s")
    if process.returncode:
        return _failed(job, f"ended with {process.returncode}: {complaint.strip().splitlines()[-1:]}")
    return Outcome.from_json(json.loads(printed.splitlines()[-1]))


def _patience_seconds(job: Job) -> float:
    return _PATIENCE_SECONDS + job.seconds * min(_MOST_STEPS, job.rounds + 1)


def _failed(job: Job, why: str) -> Outcome:
    return Outcome(instance=job.instance, engine=job.engine, failure=why)
