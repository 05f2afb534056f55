"""The `spec.behavior` of a HorizontalPodAutoscaler: rate limits and stabilization windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from apiserver.schema.quantities import amount

if TYPE_CHECKING:
    from apiserver.schema.json import Json

Select = Literal["Max", "Min", "Disabled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """A number of pods, or a percentage of them, per period."""

    type: Literal["Pods", "Percent"]
    value: int
    period_seconds: int = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """The rules for one direction; `tolerance` is the relative deviation from the target that is ignored."""

    window_seconds: int
    paces: tuple[Pace, ...]
    select: Select = "Max"
    tolerance: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviour:
    """The rules for both directions, with the defaults of Kubernetes."""

    up: Direction = Direction(
        window_seconds=0, paces=(Pace(type="Percent", value=100), Pace(type="Pods", value=4))
    )
    down: Direction = Direction(window_seconds=300, paces=(Pace(type="Percent", value=100),))

    def without_tolerance(self) -> Behaviour:
        """Return the rules without tolerance, for a metric that is itself a number of replicas."""
        return Behaviour(up=replace(self.up, tolerance=0.0), down=replace(self.down, tolerance=0.0))


DEFAULT_BEHAVIOUR = Behaviour()
"""The defaults of Kubernetes."""


def behaviour_of(spec: Json) -> Behaviour:
    """Return the behavior in the spec of a valid HorizontalPodAutoscaler, with defaults applied."""
    said, default = spec.get("behavior") or {}, DEFAULT_BEHAVIOUR
    return Behaviour(
        up=_direction(said.get("scaleUp") or {}, default.up),
        down=_direction(said.get("scaleDown") or {}, default.down),
    )


def as_behaviour(behaviour: Behaviour) -> Json:
    """Return the equivalent `spec.behavior`."""
    return {"scaleUp": _as_rules(behaviour.up), "scaleDown": _as_rules(behaviour.down)}


def _direction(said: Json, default: Direction) -> Direction:
    paces = tuple(
        Pace(type=item["type"], value=int(item["value"]), period_seconds=int(item["periodSeconds"]))
        for item in said.get("policies") or []
    )
    window, tolerance = said.get("stabilizationWindowSeconds"), said.get("tolerance")
    return Direction(
        window_seconds=default.window_seconds if window is None else int(window),
        paces=paces or default.paces,
        select=said.get("selectPolicy") or default.select,
        tolerance=default.tolerance if tolerance is None else float(amount(tolerance) or 0),
    )


def _as_rules(direction: Direction) -> Json:
    return {
        "stabilizationWindowSeconds": direction.window_seconds,
        "selectPolicy": direction.select,
        "tolerance": f"{direction.tolerance:g}",
        "policies": [
            {"type": pace.type, "value": pace.value, "periodSeconds": pace.period_seconds}
            for pace in direction.paces
        ],
    }
