"""`stowplan simulate -f`: reading exported objects, errors and warnings."""

from __future__ import annotations

from typing import Any

from support.manifests import deployment, l4_node, listed, variant

from apiserver.kinds.settings_names import NamesConfig
from controller.closedloop.scenario import Scenario
from controller.commands.check.sources import Source
from controller.commands.plan.reading import read
from controller.commands.simulate.exported import Supplied, read_export
from controller.commands.simulate.given import Given
from controller.simulation.trace import load_trace, shipped_traces
from controller.simulation.workload import Played
from controller.sizing.records import StepParameters


def _exported(**spec: Any) -> Given:
    """Return the scenario read from the objects of one variant with some more fields."""
    text = listed(
        l4_node("n"), deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat", **spec)
    )
    found = read([Source(name="live.json", data=text.encode())], namespace="default")
    profile = StepParameters(alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03)
    supplied = Supplied(
        workloads={"": Played(trace=load_trace(shipped_traces()[0])[:10])},
        start_up_seconds={"chat": 60},
        profiles={"chat": profile},
        kv_tokens={"chat": 100_000},
    )
    likeness = Scenario(name="live", models=(), variants=(), nodes=())
    return read_export(
        found, supplied, settings_namespace="stowplan-system", scenario=likeness, names=NamesConfig()
    )


def test_fields_unknown_to_admission_are_rejected() -> None:
    """The error names the file and the object, as in `stowplan check`."""
    given = _exported(acelerator="H100")

    assert given.scenario is None
    assert given.problems[0].startswith("live.json:")
    assert given.problems[0].endswith(': VariantAutoscaling default/chat: unknown field "spec.acelerator"')


def test_a_missing_service_class_causes_a_warning() -> None:
    """The model gets the lowest priority."""
    given = _exported(sloClassRef={"name": "service-classes-config", "key": "gold.yaml"})

    assert given.scenario is not None
    assert given.scenario.models[0].priority == 100
    assert any(
        text.startswith("chat: spec.sloClassRef: ConfigMap 'service-classes-config' of Stowplan's namespace")
        for text in given.warnings
    )
