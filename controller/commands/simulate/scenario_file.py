"""Build a scenario from a scenario file, reporting all of its problems at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apiserver.schema.declaration import UNSET
from apiserver.schema.json import Json
from apiserver.schema.paths import camel_case
from apiserver.serving.config import ConfigurationError, load
from controller.commands.check.documents import Source
from controller.commands.check.tree import UnreadableDocumentError
from controller.commands.plan.reading import InputProblem, documents_of, with_lines
from controller.commands.simulate.engines import EngineOrigins
from controller.commands.simulate.recordings import trace_of
from controller.commands.simulate.scenario_fields import ModelFile, ScenarioFile, VariantFile, WorkloadFile
from controller.observe.accelerators import short_name
from controller.simulation.autoscaler import behaviour_of
from controller.simulation.manifests import Manifests
from controller.simulation.profile import EngineProfile
from controller.simulation.router import Routing
from controller.simulation.scenario import WARM_UP_SECONDS, NodeGroup, Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Curve, DrawnArrivals, TraceReplay, Workload, piece
from controller.sizing.records import Targets

_BLOCK_SIZE = 16
_MOST_REQUESTS = 20_000_000
_MEMBER = re.compile(r"[a-z]+(_[a-z]+)+")
_ANY_SECONDS = 366 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioInputs:
    """A scenario, the objects of a live cluster if it is built from those, and the policies that it names.

    Without a scenario there are problems.
    """

    scenario: Scenario | None = None
    manifests: Manifests | None = None
    policies: tuple[str, ...] = ("stowplan",)
    origins: tuple[EngineOrigins, ...] = ()
    """Where the numbers about exported engines are from."""

    assumed: tuple[str, ...] = ()
    """Exported workloads for which variants are assumed."""

    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_scenario(source: Source) -> ScenarioInputs:
    """Return the scenario in a file; traces are searched for next to it."""
    if source.problem:
        return ScenarioInputs(problems=(f"{source.name}: {source.problem}",))
    try:
        declared = load(ScenarioFile, _document(source.data))
    except UnreadableDocumentError as error:
        problem = InputProblem(file=source.name, line=error.line, text=error.message)
        return ScenarioInputs(problems=(str(problem),))
    except ConfigurationError as error:
        return ScenarioInputs(problems=tuple(map(str, with_lines(source.name, source.data, error.problems))))
    reader = _Reader(declared, Path(source.name).parent)
    scenario = reader.scenario()
    problems = tuple(map(str, with_lines(source.name, source.data, reader.problems)))
    return ScenarioInputs(
        scenario=None if problems else scenario, policies=declared.policies, problems=problems
    )


def _document(data: bytes) -> Json:
    """Return the mapping in a file. Raises ConfigurationError or UnreadableError."""
    documents = documents_of(data)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError(["must be one YAML mapping: the scenario"])
    return documents[0]


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
        models = [self._model(f"models[{number}]", item) for number, item in enumerate(declared.models)]
        variants = [
            self._variant(f"variants[{number}]", item) for number, item in enumerate(declared.variants)
        ]
        routing = self._routing()
        if self.problems or routing is None:
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
            behaviour=behaviour_of({"behavior": msgspec.to_builtins(declared.behavior)}),
            grace_seconds=declared.grace_seconds,
            routing=routing,
            patience_seconds=declared.patience_seconds or None,
            seed=declared.seed,
        )

    def _routing(self) -> Routing | None:
        declared = self._declared.router
        try:
            return Routing(policy=declared.policy, stale_seconds=declared.stale_seconds)
        except ValueError as error:
            self.problems.append(f"router.staleSeconds: {_as_fields(error)}")
            return None

    def _check_names(self) -> None:
        models, variants = self._declared.models, self._declared.variants
        for where, names in (
            ("models[{}].id", [item.id for item in models]),
            ("variants[{}].name", [item.name for item in variants]),
        ):
            self.problems += [
                f"{where.format(number)}: {name!r} is already in use: names must be unique"
                for number, name in enumerate(names)
                if name in names[:number]
            ]
        used = {self._model_of(item) for item in variants}
        self.problems += [
            f"models[{number}]: model {item.id!r} has no variant"
            for number, item in enumerate(models)
            if item.id not in used
        ]

    def _model_of(self, variant: VariantFile) -> str:
        if variant.model is not UNSET:
            return variant.model
        models = self._declared.models
        return models[0].id if len(models) == 1 else ""

    def _model(self, where: str, declared: ModelFile) -> ScenarioModel | None:
        workload = self._workload(f"{where}.workload", declared.workload)
        if workload is None:
            return None
        return ScenarioModel(
            model_id=declared.id,
            workload=workload,
            targets=Targets(
                ttft_seconds=_seconds(declared.ttft_milliseconds),
                itl_seconds=_seconds(declared.itl_milliseconds),
            ),
            priority=declared.priority,
        )

    def _workload(self, where: str, declared: WorkloadFile) -> Workload | None:
        curve = declared.curve
        if curve is not UNSET and curve.low > curve.high:
            self.problems.append(
                f"{where}.curve.low: must be at most high, {curve.high:g}, was {curve.low:g}"
            )
        trace, problems = trace_of(declared.trace, folder=self._folder)
        self.problems += [f"{where}.trace: {problem}" for problem in problems]
        if not trace:
            return None
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
                return DrawnArrivals(curve=drawn, lengths=trace, noise=curve.noise)
            except ValueError as error:
                self.problems.append(f"{where}.curve: {_as_fields(error)}")
                return None
        trace = piece(trace, from_seconds=declared.from_seconds, to_seconds=_ANY_SECONDS)
        if not trace:
            text = f"{where}.fromSeconds: the trace has no request from {declared.from_seconds:g} s on"
            self.problems.append(text)
            return None
        if len(trace) * declared.copies > _MOST_REQUESTS:
            self.problems.append(f"{where}.copies: makes more than {_MOST_REQUESTS} requests")
        return TraceReplay(trace=trace, copies=declared.copies, jitter_seconds=declared.jitter_seconds)

    def _variant(self, where: str, declared: VariantFile) -> VariantSetup | None:
        model_id, profile = self._model_of(declared), declared.profile
        if model_id not in {item.id for item in self._declared.models}:
            text = f"{model_id!r} is not in models" if model_id else "specify the model that it serves"
            self.problems.append(f"{where}.model: {text}")
        if not self._has_place(declared):
            needs = f"{declared.accelerators_per_replica} {declared.accelerator}"
            self.problems.append(f"{where}: no node has {needs}")
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
                prefix_hit_share=profile.prefix_hit_share,
                accepted_tokens_per_step=profile.accepted_tokens_per_step,
                ranks=profile.ranks,
                role=declared.role,
            )
        except ValueError as error:
            self.problems.append(f"{where}.profile: {_as_fields(error)}")
            return None
        if declared.min_replicas > declared.max_replicas:
            self.problems.append(f"{where}.minReplicas: must not be greater than maxReplicas")
        if declared.start_up_jitter_seconds > declared.start_up_seconds:
            self.problems.append(f"{where}.startUpJitterSeconds: must not be greater than startUpSeconds")
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
        kind = short_name(variant.accelerator)
        return any(
            short_name(item.accelerator) == kind and item.accelerators >= variant.accelerators_per_replica
            for item in self._declared.nodes
        )


def _as_fields(error: ValueError) -> str:
    """Return the text of an error about a record, with the names of the scenario's fields."""
    return _MEMBER.sub(lambda match: camel_case(match[0].removesuffix("_ms")), str(error))


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None
