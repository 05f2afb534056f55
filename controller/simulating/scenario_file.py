"""Build a scenario from a scenario file, reporting all of its problems at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from apiserver.checking.sources import Source
from apiserver.schema.declaration import UNSET
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.shape import DEEPEST, is_deeper_than
from apiserver.serving.config import ConfigurationError, load
from controller.closedloop.behaviour import DEFAULT_BEHAVIOUR, Behaviour, Direction, Pace
from controller.closedloop.scenario import (
    WARM_UP_SECONDS,
    Model,
    NodeGroup,
    Scenario,
    Targets,
    VariantSetup,
)
from controller.observe.accelerators import normalised
from controller.simulating.declared import ModelFile, RulesFile, ScenarioFile, VariantFile, WorkloadFile
from controller.simulating.given import Given
from controller.simulating.traces import trace_of
from controller.simulation.curve import Curve
from controller.simulation.profile import EngineProfile
from controller.simulation.trace import Trace, piece
from controller.simulation.workload import Drawn, Played, Workload

_BLOCK_SIZE = 16
_MOST_REQUESTS = 20_000_000
_ANY_SECONDS = 366 * 86_400.0


def read_scenario(source: Source) -> Given:
    """Return the scenario in a file; traces are searched for next to it."""
    if source.problem:
        return Given(problems=(f"{source.name}: {source.problem}",))
    try:
        declared = load(ScenarioFile, _document(source.data))
    except ConfigurationError as error:
        return Given(problems=tuple(f"{source.name}: {problem}" for problem in error.problems))
    reader = _Reader(declared, Path(source.name).parent)
    scenario = reader.scenario()
    problems = tuple(f"{source.name}: {problem}" for problem in reader.problems)
    return Given(scenario=None if problems else scenario, policies=declared.policies, problems=problems)


def _document(data: bytes) -> Json:
    """Return the mapping in a file. Raises ConfigurationError."""
    try:
        document = yaml.safe_load(data.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigurationError([" ".join(str(error).split())]) from error
    if not isinstance(document, dict):
        raise ConfigurationError(["must be one YAML mapping: the scenario"])
    if is_deeper_than(document, DEEPEST):
        raise ConfigurationError(["must not be nested as deeply as this"])
    if endless := list(_endless(document, "")):
        raise ConfigurationError([f"{path}: must be a finite number" for path in endless])
    return document


def _endless(value: JsonValue, path: str) -> Iterator[str]:
    """Yield the paths of numbers that are infinite or NaN, which range checks do not catch."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path.lstrip(".")
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, item in members:
        yield from _endless(item, f"{path}.{name}")


class _Reader:
    """Builds the scenario from the declaration, and collects problems."""

    def __init__(self, declared: ScenarioFile, folder: Path) -> None:
        self.problems: list[str] = []
        self._declared = declared
        self._folder = folder

    def scenario(self) -> Scenario | None:
        """Return the scenario; None if there are problems."""
        declared = self._declared
        self._check_names()
        models = [self._model(number, item) for number, item in enumerate(declared.models)]
        variants = [self._variant(number, item) for number, item in enumerate(declared.variants)]
        if self.problems:
            return None
        return Scenario(
            name=declared.name,
            models=tuple(item for item in models if item),
            variants=tuple(item for item in variants if item),
            nodes=tuple(
                NodeGroup(accelerator=item.accelerator, accelerators=item.accelerators, count=item.count)
                for item in declared.nodes
            ),
            duration_seconds=declared.duration_seconds,
            warm_up_seconds=WARM_UP_SECONDS if declared.start == "warm" else 0.0,
            behaviour=Behaviour(
                up=_direction(declared.behavior.scale_up, DEFAULT_BEHAVIOUR.up),
                down=_direction(declared.behavior.scale_down, DEFAULT_BEHAVIOUR.down),
            ),
            grace_seconds=declared.grace_seconds,
            seed=declared.seed,
        )

    def _check_names(self) -> None:
        models, variants = self._declared.models, self._declared.variants
        for what, names in (
            ("model", [item.id for item in models]),
            ("variant", [item.name for item in variants]),
        ):
            self.problems += [
                f"{what} {name!r} is there {count} times: names must be unique"
                for name, count in Counter(names).items()
                if count > 1
            ]
        used = {self._model_of(item) for item in variants}
        self.problems += [f"model {item.id!r} has no variant" for item in models if item.id not in used]

    def _model_of(self, variant: VariantFile) -> str:
        if variant.model is not UNSET:
            return variant.model
        models = self._declared.models
        return models[0].id if len(models) == 1 else ""

    def _model(self, number: int, declared: ModelFile) -> Model | None:
        workload = self._workload(f"models.{number}.workload", declared.workload)
        if workload is None:
            return None
        return Model(
            model_id=declared.id,
            workload=workload,
            targets=Targets(
                ttft_seconds=_seconds(declared.ttft_milliseconds),
                itl_seconds=_seconds(declared.itl_milliseconds),
            ),
            priority=declared.priority,
        )

    def _workload(self, where: str, declared: WorkloadFile) -> Workload | None:
        trace, problems = trace_of(declared.trace, folder=self._folder)
        self.problems += [f"{where}.trace: {problem}" for problem in problems]
        if not trace:
            return None
        curve = declared.curve
        if curve is not UNSET:
            if curve.high * self._declared.duration_seconds > _MOST_REQUESTS:
                self.problems.append(f"{where}.curve.high: makes more than {_MOST_REQUESTS} requests")
            try:
                drawn = Curve(
                    shape=curve.shape,
                    high=curve.high,
                    low=curve.low,
                    at_seconds=curve.at_seconds,
                    length_seconds=curve.length_seconds,
                    period_seconds=curve.period_seconds,
                )
                return Drawn(curve=drawn, lengths=trace, noise=curve.noise)
            except ValueError as error:
                self.problems.append(f"{where}.curve: {error}")
                return None
        return self._played(
            where, declared, piece(trace, from_seconds=declared.from_seconds, to_seconds=_ANY_SECONDS)
        )

    def _played(self, where: str, declared: WorkloadFile, trace: Trace) -> Workload | None:
        if not trace:
            text = f"{where}.fromSeconds: the trace has no request from {declared.from_seconds:g} s on"
            self.problems.append(text)
            return None
        if len(trace) * declared.copies > _MOST_REQUESTS:
            self.problems.append(f"{where}.copies: makes more than {_MOST_REQUESTS} requests")
        return Played(trace=trace, copies=declared.copies, jitter_seconds=declared.jitter_seconds)

    def _variant(self, number: int, declared: VariantFile) -> VariantSetup | None:
        where, model_id, profile = f"variants.{number}", self._model_of(declared), declared.profile
        if model_id not in {item.id for item in self._declared.models}:
            said = f"{model_id!r} is not in models" if model_id else "specify the model that it serves"
            self.problems.append(f"{where}.model: {said}")
        if not self._has_place(declared):
            asked = f"{declared.accelerators_per_replica} {declared.accelerator}"
            self.problems.append(f"{where}: no node has {asked}")
        try:
            engine = EngineProfile(
                model_id=model_id or "-",
                alpha_ms=profile.alpha,
                beta_ms=profile.beta,
                gamma_ms=profile.gamma,
                delta_ms=profile.delta,
                num_gpu_blocks=profile.kv_tokens // _BLOCK_SIZE,
                block_size=_BLOCK_SIZE,
                max_num_seqs=profile.max_num_seqs,
                max_num_batched_tokens=profile.max_num_batched_tokens,
            )
        except ValueError as error:
            self.problems.append(f"{where}.profile: {error}")
            return None
        if declared.min_replicas > declared.max_replicas:
            self.problems.append(f"{where}.minReplicas: must not be greater than maxReplicas")
        return VariantSetup(
            name=declared.name,
            profile=engine,
            accelerator=declared.accelerator,
            accelerators_per_replica=declared.accelerators_per_replica,
            price_per_hour=declared.price_per_hour,
            start_up_seconds=declared.start_up_seconds,
            start_up_jitter_seconds=declared.start_up_jitter_seconds,
            initial_replicas=declared.initial_replicas,
            min_replicas=declared.min_replicas,
            max_replicas=declared.max_replicas,
            stated_profile=engine if declared.states_profile else None,
        )

    def _has_place(self, variant: VariantFile) -> bool:
        kind = normalised(variant.accelerator)
        return any(
            normalised(item.accelerator) == kind and item.accelerators >= variant.accelerators_per_replica
            for item in self._declared.nodes
        )


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None


def _direction(declared: RulesFile, default: Direction) -> Direction:
    window, tolerance = declared.stabilization_window_seconds, declared.tolerance
    paces = tuple(
        Pace(type=item.type, value=item.value, period_seconds=item.period_seconds)
        for item in declared.policies
    )
    return Direction(
        window_seconds=default.window_seconds if window is UNSET else window,
        paces=paces or default.paces,
        select=declared.select_policy,
        tolerance=default.tolerance if tolerance is UNSET else tolerance,
    )
