"""Checks of what is planned: settings, nodes, autoscalers, engines and Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from apiserver.cluster.resource import (
    CONFIG_MAPS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
)
from apiserver.kinds.annotated import managed_autoscalers
from apiserver.kinds.autoscalers import DECISION_METRICS, DEFAULT_TOLERANCE
from apiserver.schema.json import as_object
from controller.commands.doctor.evidence import Evidence
from controller.commands.doctor.installation import unknown
from controller.commands.plan.gathering import InputsResult
from controller.commands.status.fleet import FleetState, Severity
from controller.commands.upgrade.report import Finding, note, ok, problem
from controller.engines.exposition import SERIES, Meaning
from controller.observe.inventory import accelerators_on, type_of
from controller.observe.scalers import autoscalers_by_target
from controller.planning.wording import count, first_of

_MOST_NAMED: Final = 5
_MOST_PROBLEMS: Final = 10
_FOLLOWING: Final = "see 'The HPA that follows' in docs/getting-started.md"
_HISTOGRAMS: Final = (Meaning.FIRST_TOKEN_TIMES, Meaning.TOKEN_TIMES)


def check_settings(seen: Evidence, gathering: InputsResult) -> Iterator[Finding]:
    """Yield invalid settings; the last valid ones apply meanwhile."""
    for text in seen.config_problems:
        remedy = f"kubectl -n {seen.system} edit the ConfigMap of the controller"
        yield problem("settings", f"the controller's configuration is invalid: {text}", remedy)
    for item in gathering.problems:
        yield problem("settings", str(item), "stowplan check -f FILE on the ConfigMaps of prices and classes")
    if seen.config is not None and not gathering.problems:
        yield ok("settings", "the controller's configuration is valid")


def check_nodes(seen: Evidence) -> Iterator[Finding]:
    """Yield nodes whose accelerators have no type."""
    if not seen.live.may_read(NODES):
        yield unknown("nodes", "nodes")
        return
    equipped = [node for node in seen.live.of(NODES) if accelerators_on(node)]
    bare = [str(node["metadata"]["name"]) for node in equipped if not type_of(node)]
    if bare:
        names = first_of(bare, _MOST_NAMED)
        text = f"{count(len(bare), 'node')} with accelerators of no known type: {names}"
        yield note(
            "nodes",
            text,
            "kubectl label node NAME nvidia.com/gpu.product=PRODUCT, or run GPU feature discovery",
        )
    if equipped:
        yield ok("nodes", f"{count(len(equipped), 'node')} with accelerators")
    else:
        text = "no node has allocatable accelerators"
        yield note(
            "nodes", text, "install the device plugin: kubectl get nodes -o yaml shows status.allocatable"
        )


def check_autoscalers(seen: Evidence, gathering: InputsResult) -> Iterator[Finding]:
    """Yield autoscalers that do not follow decisions, or only late or coarsely."""
    missing = [
        item for item in (VARIANT_AUTOSCALINGS, HORIZONTAL_POD_AUTOSCALERS) if not seen.live.may_read(item)
    ]
    if missing:
        yield unknown("autoscalers", *(item.full_name for item in missing))
        return
    observed = gathering.seen.observed if gathering.seen else {}
    misread = [(item, wrong.message) for item in observed.values() for wrong in item.misread]
    for item, text in misread[:_MOST_PROBLEMS]:
        owner = item.claim.owner
        place = f"{owner.kind.short_name}/{owner.name} -n {owner.namespace}"
        yield problem("autoscalers", f"{'/'.join(item.claim.key)}: {text}", f"stowplan explain {place}")
    if len(misread) > _MOST_PROBLEMS:
        yield problem("autoscalers", f"{len(misread) - _MOST_PROBLEMS} more", "stowplan explain -A")
    slow = [*_slow(seen)]
    for text, remedy in slow[:_MOST_PROBLEMS]:
        yield note("autoscalers", text, remedy)
    if not misread and not slow:
        yield ok("autoscalers", f"{count(len(observed), 'variant')} without a problem")


def _slow(seen: Evidence) -> Iterator[tuple[str, str]]:
    """Yield autoscalers that follow with a delay or a tolerance, and how to change it."""
    by_target = autoscalers_by_target(seen.live.of(HORIZONTAL_POD_AUTOSCALERS), seen.live.of(SCALED_OBJECTS))
    for key, autoscalers in sorted(by_target.items()):
        for item in autoscalers:
            if not DECISION_METRICS & {reading.name for reading in item.readings}:
                continue
            parts = []
            if item.up_window_seconds > 0:
                parts.append(f"scales up {item.up_window_seconds:g} s late (stabilizationWindowSeconds)")
            if item.down_window_seconds > 0:
                parts.append(f"scales down {item.down_window_seconds:g} s late (stabilizationWindowSeconds)")
            if item.up_tolerance >= DEFAULT_TOLERANCE:
                parts.append(f"ignores differences of {100 * item.up_tolerance:g} % (tolerance)")
            if parts:
                text = f"{key.namespace}: {item.display_name} {' and '.join(parts)}"
                what = f"scaledobject {item.scaled_object}" if item.scaled_object else f"hpa {item.name}"
                yield text, f"kubectl -n {key.namespace} edit {what}: {_FOLLOWING}"


def check_keda(seen: Evidence) -> Iterator[Finding]:
    """Yield whether KEDA's ScaledObjects can be read, and get decisions."""
    if "keda.sh" not in seen.groups:
        return
    if SCALED_OBJECTS in seen.live.forbidden:
        text = "KEDA is installed, but ScaledObjects may not be read"
        yield note("keda", text, "grant list and watch on scaledobjects.keda.sh")
        return
    yield ok("keda", f"{count(len(seen.live.of(SCALED_OBJECTS)), 'ScaledObject')}")


def check_prometheus(seen: Evidence) -> Iterator[Finding]:
    """Yield whether the configured Prometheus answers, and has the engines' series and histograms."""
    state = seen.prometheus
    if state is None:
        return
    ask = "curl -G URL/api/v1/query --data-urlencode 'query=up' from a pod of the controller's namespace"
    if state.problem:
        make = problem if state.is_asked else note
        yield make("prometheus", f"{state.url} was not reached: {state.problem}", ask)
    elif not state.is_asked:
        yield note("prometheus", f"{state.url} is no Service of this cluster: it was not asked", ask)
    elif not state.engines:
        text = f"{state.url} has no series of vLLM or SGLang"
        yield problem(
            "prometheus",
            text,
            "let it scrape the engines: see 'Engines in a Prometheus' in docs/platforms.md",
        )
    else:
        kinds = sorted({str(named.kind) for named in SERIES if named.name in state.engines})
        yield ok("prometheus", f"{state.url} has series of {' and '.join(kinds)}")
        yield from _without_histograms(state.engines)


def _without_histograms(names: Iterable[str]) -> Iterator[Finding]:
    known = {*names}
    for kind in sorted({named.kind for named in SERIES if named.name in known}):
        of_kind = [named for named in SERIES if named.kind is kind]
        lacking = [
            meaning
            for meaning in _HISTOGRAMS
            if known.isdisjoint(named.name for named in of_kind if named.meaning is meaning)
        ]
        if lacking:
            text = f"the engines of {kind} have no histogram of {' and of '.join(map(str, lacking))}"
            text += ": it is not known which requests meet their targets"
            yield note("prometheus", text, "keep the series *_bucket in the relabelling of the scrape")


def check_engines(gathering: InputsResult) -> Iterator[Finding]:
    """Yield variants with targets whose requests are not counted against them: engines without histograms."""
    if gathering.seen is None:
        return
    silent = []
    for item in gathering.seen.claimants:
        observed, decision = gathering.seen.observed.get(item.key), as_object(item.status.get("decision"))
        demand = as_object(decision.get("demand"))
        if (
            observed is None
            or decision.get("serviceLevel")
            or not float(demand.get("requestsPerSecond") or 0)
        ):
            continue
        targets = observed.facts.targets
        if targets.ttft_seconds is not None or targets.itl_seconds is not None:
            silent.append("/".join(item.key))
    if silent:
        text = (
            f"requests of {first_of(silent, _MOST_NAMED)} are not counted against their targets: the engines"
            " report no histograms of the time to first token and between tokens"
        )
        yield note("engines", text, "stowplan profile va/NAME -n NAMESPACE, or a newer release of the engine")


def check_fleet(fleet: FleetState) -> Iterator[Finding]:
    """Yield what the statuses of objects report; what other checks report is left out."""
    shown = [
        item
        for item in fleet.problems
        if item.severity is not Severity.CRITICAL and item.reason not in ("Forbidden", "Invalid")
    ]
    for item in shown[:_MOST_PROBLEMS]:
        make = problem if item.severity is Severity.ERROR else note
        yield make("objects", f"{item.subject}: {item.reason}: {item.message}", item.command)
    if len(shown) > _MOST_PROBLEMS:
        yield note("objects", f"{len(shown) - _MOST_PROBLEMS} more", "stowplan explain -A")
    if not shown and (fleet.models or fleet.bindings):
        models, bindings = count(len(fleet.models), "model"), count(len(fleet.bindings), "binding")
        yield ok("objects", f"{models} and {bindings} without a problem")


def check_annotated(seen: Evidence) -> Iterator[Finding]:
    """Yield annotated autoscalers if nothing was ever decided on any of them."""
    managed = [*managed_autoscalers(seen.live.of(HORIZONTAL_POD_AUTOSCALERS), seen.live.of(SCALED_OBJECTS))]
    if managed and seen.is_installed and not seen.live.of(CONFIG_MAPS):
        text = f"{count(len(managed), 'annotated autoscaler')} without a decision"
        yield note("autoscalers", text, "install the component annotated: see docs/annotated.md")
