"""The capacity of a replica, found by simulation: the highest constant rate at which it keeps a promise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Final

from controller.simulation.lower_bound import least_work
from controller.simulation.run import simulate
from controller.simulation.scenario import NodeGroup, Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Curve, DrawnArrivals, Trace
from hack.decisions.points import requests_of
from hack.decisions.rows import Row

_PEAK_SECONDS: Final = 300.0
_WARM_UP_SECONDS: Final = 300.0
_LONGEST_SECONDS: Final = 1800.0
_MOST_REQUESTS: Final = 20_000
_HALVINGS: Final = 6


def capacity(variant: VariantSetup, model: ScenarioModel, lengths: Trace) -> float:
    """Return the requests per second that one replica serves within the promise, for lengths of a trace.

    Arrivals are Poisson. The search halves the range below the rate that no schedule reaches, six times.
    """
    requests = steady(variant, model, lengths, 1.0).requests()[model.model_id]
    work = least_work(variant, model, requests)
    low, high = 0.0, variant.profile.ranks / fmean(item for item in map(work, requests) if item < math.inf)
    for _ in range(_HALVINGS):
        rate = (low + high) / 2
        missed = simulate(steady(variant, model, lengths, rate), f"constant:1@{variant.name}").missed
        low, high = (rate, high) if missed <= 1 - model.targets.attainment else (low, rate)
    return low


def sizes_of(row: Row) -> Mapping[str, tuple[int, int]]:
    """Return the replicas of each variant for the mean rate of a row's load, and for its peak."""
    (model,), scenario = row.scenario.models, row.scenario
    workload = model.workload
    lengths = workload.lengths if isinstance(workload, DrawnArrivals) else workload.trace
    arrivals = [item.arrival_us / 1e6 for item in requests_of(row.name, 1)[model.model_id]]
    scored = [item for item in arrivals if item >= scenario.warm_up_seconds]
    most = max(Counter(int(item / _PEAK_SECONDS) for item in scored).values())
    mean, peak = len(scored) / scenario.duration_seconds, most / _PEAK_SECONDS
    sizes = {}
    for variant in scenario.variants:
        served = capacity(variant, model, lengths) or math.inf  # one replica, if even that misses too much
        sizes[variant.name] = max(1, math.ceil(mean / served)), max(1, math.ceil(peak / served))
    return sizes


def steady(
    variant: VariantSetup, model: ScenarioModel, lengths: Trace, rate: float, *, replicas: int = 1
) -> Scenario:
    """Return a constant rate on a few replicas of one variant, and no room for more: at most half an hour."""
    workload = DrawnArrivals(curve=Curve(shape="constant", high=rate), lengths=lengths)
    return Scenario(
        name="steady",
        models=(replace(model, workload=workload),),
        variants=(replace(variant, initial_replicas=replicas, min_replicas=replicas),),
        nodes=(NodeGroup(accelerator=variant.accelerator, accelerators=replicas, count=1),),
        duration_seconds=min(_LONGEST_SECONDS, _MOST_REQUESTS / rate),
        warm_up_seconds=_WARM_UP_SECONDS,
    )
