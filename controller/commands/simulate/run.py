"""`stowplan simulate`: what policies would have cost and missed, in virtual time."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from apiserver.cluster.namespaces import DEFAULT
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.program import exit_code
from controller.commands.check.documents import Source, read_sources
from controller.commands.plan.assumptions import with_assumptions
from controller.commands.plan.configuring import ConfigurationResult, read_configuration
from controller.commands.plan.reading import read
from controller.commands.plan.terminal import harmless, show, write_file
from controller.commands.profile.arguments import credentials
from controller.commands.simulate.arguments import SHORTEST_SECONDS, parser
from controller.commands.simulate.engines import PastReader, ScenarioData
from controller.commands.simulate.export import read_export
from controller.commands.simulate.history import read_past
from controller.commands.simulate.page import page
from controller.commands.simulate.policy_file import is_policy_file, read_policy_file, remarks, with_targets
from controller.commands.simulate.recordings import one_source, trace_of
from controller.commands.simulate.replay import is_replay, run_replay
from controller.commands.simulate.results import (
    Results,
    as_document,
    metric_warnings,
    target_warnings,
    text_parts,
)
from controller.commands.simulate.scenario_file import ScenarioInputs, read_scenario
from controller.simulation.scenario import WARM_UP_SECONDS, Scenario
from controller.simulation.workload import TraceReplay, Workload
from controller.variants.solver_worker import without_collection

if TYPE_CHECKING:
    from controller.simulation.outcome import PolicyOutcome
    from controller.simulation.run import PolicyName
    from controller.variants.variantautoscaling import CycleSettings

_PLAYED: Final = 0
_UNREADABLE: Final = 2
_LAST_SECONDS: Final = 86_400.0
_TRACE_HINT: Final = "; specify --trace FILE to simulate the binding's own targets"


def main(arguments: Sequence[str]) -> int:
    """Run the simulation and return the exit code."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _run(options), unread=_PLAYED)


def _run(options: argparse.Namespace) -> int:
    configuring = read_configuration(options.config)
    if is_replay(options):
        problems = run_replay(options, configuring)
        _tell(problems)
        return _UNREADABLE if problems else _PLAYED
    given = _read_input(options, configuring)
    problems = [*map(str, configuring.problems), *given.problems, *_misuses(options)]
    has_own = options.files or options.scenario or options.trace
    names, unknown = _policies(options.policy or given.policies, given, hint="" if has_own else _TRACE_HINT)
    problems += unknown
    if problems or given.scenario is None:
        _tell(problems)
        return _UNREADABLE
    scenario = _with_options(given.scenario, options)
    with without_collection():
        outcomes = asyncio.run(_play(scenario, given, names, configuring))
    warnings = (*given.warnings, *target_warnings(scenario), *metric_warnings(outcomes))
    results = Results(
        scenario=scenario,
        outcomes=tuple(outcomes),
        warnings=warnings,
        origins=given.origins,
        assumed=given.assumed,
    )
    # Before anything is printed: the reader of the output may stop early.
    unwritten = write_file(options.html, page(results).encode()) if options.html else ""
    _tell([f"{options.html}: {unwritten}"] if unwritten else [])
    if options.output == "json":
        sys.stdout.write(json.dumps(as_document(results), ensure_ascii=False) + "\n")
    else:
        show(text_parts(results))
    sys.stdout.flush()
    return _UNREADABLE if unwritten else _PLAYED


def _read_input(options: argparse.Namespace, configuring: ConfigurationResult) -> ScenarioInputs:
    if not options.files:
        given = read_scenario(_scenario_source(options.scenario))
        return given if options.scenario or not options.trace else _with_trace(given, options)
    workloads, problems = _workloads(options)
    namespace = options.namespace or DEFAULT
    assumed = with_assumptions(read(list(read_sources(options.files)), namespace=namespace))
    sys.stderr.write(assumed.objects.skipped_note)
    supplied = ScenarioData(
        workloads=workloads,
        start_up_seconds=dict(options.start_up),
        profiles=dict(options.profile),
        kv_tokens=dict(options.kv_tokens),
        reads_past=_past_reader(options),
    )
    longest = max((_length_seconds(item) for item in workloads.values()), default=SHORTEST_SECONDS)
    likeness = Scenario(
        name=title_of(options.files[0]), models=(), variants=(), nodes=(), duration_seconds=longest
    )
    given = read_export(
        assumed.objects,
        supplied,
        settings_namespace=options.settings_namespace or configuring.namespace or INSTALLATION,
        names=configuring.names,
        scenario=likeness,
    )
    return replace(
        given,
        problems=(*problems, *given.problems, *(() if assumed.workloads else assumed.warnings)),
        warnings=(*assumed.warnings, *given.warnings),
        assumed=assumed.workloads,
    )


def _past_reader(options: argparse.Namespace) -> PastReader | None:
    if not options.prometheus:
        return None
    return lambda variants: read_past(
        options.prometheus,
        variants,
        credentials=credentials(options),
        end_seconds=time.time(),
        last_seconds=options.last or _LAST_SECONDS,
    )


def title_of(source: str) -> str:
    """Return the name of a file or directory, whatever path leads to it, or a name for standard input."""
    return "standard input" if source == "-" else Path(source).resolve().name


def _with_trace(example: ScenarioInputs, options: argparse.Namespace) -> ScenarioInputs:
    """Return the example with the requests of a trace, and with the targets of policies in files."""
    workloads, problems = _workloads(options)
    if len(workloads) > 1:
        problems.append("without -f FILE, one model is simulated: specify one --trace FILE")
    if problems or example.scenario is None:
        return replace(example, scenario=None, problems=(*example.problems, *problems))
    (workload,) = workloads.values()
    (model,) = example.scenario.models
    model_id = next(iter(workloads)) or model.model_id
    scenario = replace(
        example.scenario,
        name=Path(options.trace[0][0]).name,
        models=(replace(model, model_id=model_id, workload=workload),),
        variants=tuple(
            replace(item, profile=replace(item.profile, model_id=model_id))
            for item in example.scenario.variants
        ),
        duration_seconds=_length_seconds(workload),
    )
    # Problems of these files are reported where policies are read.
    files = [read_policy_file(text)[0] for text in options.policy if is_policy_file(text)]
    if not (policies := [item for item in files if item]):
        return replace(example, scenario=scenario)
    warnings = tuple(remarks(scenario, policies))
    return replace(example, scenario=with_targets(scenario, policies), warnings=warnings)


def _scenario_source(name: str | None) -> Source:
    if name is not None:
        return one_source(name, what="scenario file")
    data = (resources("controller.commands.simulate") / "example.yaml").read_bytes()
    return Source(name="example", data=data)


def _workloads(options: argparse.Namespace) -> tuple[dict[str, Workload], list[str]]:
    workloads: dict[str, Workload] = {}
    problems: list[str] = []
    for file, model in options.trace:
        trace, wrong = trace_of(file, folder=Path())
        problems += wrong
        if model in workloads:
            problems.append(f"--trace {file}: {model or 'the model'} has a trace already")
        if trace:
            workloads[model] = TraceReplay(trace=trace, copies=options.copies or 1)
    return workloads, problems


def _length_seconds(workload: Workload) -> float:
    """Return the duration of a trace, rounded up to ticks."""
    last_ms = workload.trace[-1].offset_ms if isinstance(workload, TraceReplay) else 0
    return max(SHORTEST_SECONDS, -(-last_ms // 15_000) * 15.0)


def _misuses(options: argparse.Namespace) -> list[str]:
    if options.files and options.scenario:
        return ["specify either SCENARIO or -f FILE, not both"]
    wrong = ["--last requires --prometheus URL"] if options.last and not options.prometheus else []
    if options.files:
        return wrong
    if options.copies and not (options.scenario or options.trace):
        wrong.append("--copies requires --trace FILE")
    of_requests = {"--trace": options.trace, "--copies": options.copies} if options.scenario else {}
    given = of_requests | {
        "-n": options.namespace,
        "--settings-namespace": options.settings_namespace,
        "--start-up": options.start_up,
        "--profile": options.profile,
        "--kv-tokens": options.kv_tokens,
        "--prometheus": options.prometheus,
    }
    why = "a scenario contains its own values" if options.scenario else "the engine is that of the example"
    wrong += [f"{name} requires -f FILE: {why}" for name, value in given.items() if value]
    return wrong


def _policies(
    texts: Iterable[str], given: ScenarioInputs, *, hint: str
) -> tuple[list[PolicyName], list[str]]:
    """Return the policies and all problems; the hint is for files that do not fit the scenario."""
    from controller.simulation.run import PolicyName, policy_name, policy_problem  # noqa: PLC0415 (loading the solver takes a second)

    names: list[PolicyName] = []
    problems: list[str] = []
    for text in dict.fromkeys(texts):
        if is_policy_file(text):
            file, wrong = read_policy_file(text)
            problems += wrong
            name = PolicyName(text=Path(text).name, kind="file", file=file)
        else:
            try:
                name = policy_name(text)
            except ValueError as error:
                problems.append(str(error))
                continue
        names.append(name)
        if given.scenario and (problem := policy_problem(name, given.scenario, given.manifests)):
            problems.append(problem + hint if name.file else problem)
    return names, problems


def _with_options(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """Return the scenario with the options of the command line applied."""
    if options.seed is not None:
        scenario = replace(scenario, seed=options.seed)
    if options.duration is not None:
        scenario = replace(scenario, duration_seconds=options.duration)
    if options.patience is not None:
        scenario = replace(scenario, patience_seconds=options.patience or None)
    if options.start is not None:
        scenario = replace(scenario, warm_up_seconds=WARM_UP_SECONDS if options.start == "warm" else 0.0)
    return scenario


async def _play(
    scenario: Scenario, given: ScenarioInputs, names: Sequence[PolicyName], configuring: ConfigurationResult
) -> list[PolicyOutcome]:
    from controller.simulation.run import simulate_policy  # noqa: PLC0415 (as above)

    requests, cycle_settings = scenario.requests(), _cycle_settings(configuring)
    outcomes = [
        await simulate_policy(
            scenario,
            name,
            manifests=given.manifests,
            requests=requests,
            progress=_progress(name.text),
            settings=configuring.settings,
            cycle_settings=cycle_settings,
        )
        for name in names
    ]
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return outcomes


def _cycle_settings(configuring: ConfigurationResult) -> CycleSettings:
    """Return the settings of the simulated cycles.

    Node pools and evictions are left out: in virtual time nothing adds nodes or evicts pods. Advisory mode is
    left out, because the question is what its decisions would have done.
    """
    from controller.variants.variantautoscaling import CycleSettings  # noqa: PLC0415 (as above)

    terms = replace(
        configuring.terms,
        grace_seconds=configuring.grace_seconds,
        pools=(),
    )
    return CycleSettings(scale_to_zero=configuring.scales_to_zero, terms=terms, sizing=configuring.sizing)


def _progress(policy: str) -> Callable[[float], None] | None:
    if not sys.stderr.isatty():
        return None
    shown = -1

    def tell(share: float) -> None:
        nonlocal shown
        if int(100 * share) != shown:
            shown = int(100 * share)
            sys.stderr.write(f"\r\033[K{policy}: {shown} %")
            sys.stderr.flush()

    return tell


def _tell(problems: Iterable[str]) -> None:
    sys.stderr.writelines(f"error: {harmless(problem)}\n" for problem in problems)
