"""`stowplan simulate -f`: reading exported objects, errors, warnings, and the title."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.annotated import TERMS, scaled_object
from support.manifests import PERF_PARMS, Manifest, autoscaler, deployment, l4_node, listed, variant
from support.plan_verb import Simulate

from apiserver.kinds.settings_names import NamesConfig
from controller.commands.check.documents import Source
from controller.commands.plan.reading import read
from controller.commands.simulate.engines import Origin, ScenarioData
from controller.commands.simulate.export import read_export
from controller.commands.simulate.run import title_of
from controller.commands.simulate.scenario_file import ScenarioInputs
from controller.simulation.scenario import Scenario
from controller.simulation.workload import TraceReplay, included_traces, load_trace
from controller.sizing.records import StepParameters


def _exported(**spec: Any) -> ScenarioInputs:
    """Return the scenario read from the objects of one variant with some more fields."""
    return _read(variant("chat", **spec))


def _read(*objects: Manifest) -> ScenarioInputs:
    """Return the scenario read from objects about one Deployment."""
    profile = StepParameters(alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03)
    return _read_with(
        *(deployment("chat", product="NVIDIA-L4", accelerators=1), *objects),
        start_up_seconds={"chat": 60},
        profiles={"chat": profile},
        kv_tokens={"chat": 100_000},
    )


def _read_with(*objects: Manifest, **supplied: Any) -> ScenarioInputs:
    text = listed(l4_node("n"), *objects)
    return read_export(
        read([Source(name="live.json", data=text.encode())], namespace="default"),
        ScenarioData(workloads={"": TraceReplay(trace=load_trace(included_traces()[0])[:10])}, **supplied),
        settings_namespace="stowplan-system",
        scenario=Scenario(name="live", models=(), variants=(), nodes=()),
        names=NamesConfig(),
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


def _annotated(**terms: str) -> Manifest:
    value = autoscaler("chat", most=7)
    value["metadata"]["annotations"] = TERMS | {"llm-d.ai/variant-cost": "5"} | terms
    return value


def test_an_annotated_autoscaler_is_simulated_as_it_is_planned() -> None:
    """Its model, its cost and its bounds are its own."""
    given = _read(_annotated())

    assert given.scenario is not None
    (read_variant,) = given.scenario.variants
    assert (read_variant.name, read_variant.model_id) == ("chat", "meta/llama-3.1-8b")
    assert (read_variant.price_per_hour, read_variant.max_replicas) == (5.0, 7)
    assert given.manifests is not None
    owners = {name: item.owner["kind"] for name, item in given.manifests.variants.items()}
    assert owners == {"chat": "HorizontalPodAutoscaler"}


def test_a_scaled_object_has_its_own_bounds() -> None:
    """KEDA's autoscaler, which has them too, is rarely in manifests."""
    value = scaled_object("chat", "chat", minReplicaCount=2, maxReplicaCount=5)
    value["metadata"]["namespace"] = "default"
    value["metadata"]["annotations"] |= {"llm-d.ai/variant-cost": "5"}
    given = _read(value)

    assert given.scenario is not None
    (read_variant,) = given.scenario.variants
    assert (read_variant.min_replicas, read_variant.max_replicas) == (2, 5)


def test_wrong_annotations_are_reported() -> None:
    """Without a model it cannot be simulated; a wrong cost is ignored, and so is one beside a variant."""
    nameless = _read(_annotated(**{"llm-d.ai/model-id": ""}))
    costly = _read(_annotated(**{"llm-d.ai/variant-cost": "-1"}))
    second = _read(variant("chat"), _annotated())

    assert (
        "HorizontalPodAutoscaler default/chat: metadata.annotations[llm-d.ai/model-id]"
        in nameless.problems[0]
    )
    assert any("metadata.annotations[llm-d.ai/variant-cost]" in text for text in costly.warnings)
    assert any("default/chat is omitted: another object decides" in text for text in second.warnings)


def test_a_simulation_is_titled_by_the_name_of_its_file_or_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever path leads there; a dash is standard input."""
    (tmp_path / "exports").mkdir()
    monkeypatch.chdir(tmp_path / "exports")

    assert {title_of(source) for source in (".", "../exports", "./")} == {"exports"}
    assert title_of("../exports/live.yaml") == "live.yaml"
    assert title_of("-") == "standard input"


def _of_engine(arguments: list[str], *objects: Manifest, model: str = "acme/chat") -> ScenarioInputs:
    """Return the scenario of one variant with engine arguments, of which nothing else is supplied."""
    workload = deployment("chat", product="NVIDIA-L4", accelerators=1)
    workload["spec"]["template"]["spec"]["containers"][0]["args"] = arguments
    has_own = any(item["kind"] == "VariantAutoscaling" for item in objects)
    return _read_with(workload, *objects, *([] if has_own else [variant("chat", modelID=model)]))


def test_without_a_profile_and_without_the_catalog_options_are_named() -> None:
    """Both for step times and for the KV cache."""
    given = _of_engine([])

    assert given.scenario is None
    assert [text.partition(": use ")[2] for text in given.problems] == [
        "--prometheus URL, or --profile chat=ALPHA,BETA,DELTA",
        "--prometheus URL, or --kv-tokens chat=TOKENS",
    ]


def test_weights_that_do_not_fit_are_a_problem() -> None:
    """Then the name of the model, or the accelerator, is not what it seems."""
    given = _of_engine([], model="meta/llama-3.1-70b")

    assert "the weights of Llama-3.1-70B with 16-bit weights on L4 do not fit" in given.problems[0]


def test_the_catalog_replaces_what_is_not_known_and_is_named() -> None:
    """In a warning, and as the origin of each number."""
    given = _of_engine(["--num-gpu-blocks-override=1000"], model="meta/llama-3.2-3b")

    assert given.scenario is not None
    (engine,), (origins,) = given.scenario.variants, given.origins
    assert 20 < engine.profile.alpha_ms < 40
    assert (origins.step_times, origins.kv_tokens) == (Origin.CATALOG, Origin.ARGUMENTS)
    assert (origins.start_up, engine.start_up_seconds) == (Origin.ASSUMED, 120.0)
    assert origins.basis == "Llama-3.2-3B with 16-bit weights on L4"
    assert any("step times are estimated for Llama-3.2-3B" in text for text in given.warnings)


def test_what_the_controller_learned_takes_precedence_over_declared_profiles() -> None:
    """Its status is exported, too."""
    status = {
        "decision": {
            "reason": "Steady",
            "message": "",
            "performance": {
                "decodeParms": {"alpha": "13.2", "beta": "0.105"},
                "prefillParms": {"delta": "0.066"},
                "samples": 100,
                "startSeconds": 140,
                "kvCacheTokens": 160_000,
            },
        }
    }
    own = variant("chat", modelID="m", variantProfile={"perfParms": PERF_PARMS, "maxBatchSize": 48})

    given = _of_engine([], own | {"status": status})

    assert given.scenario is not None
    (engine,), (origins,) = given.scenario.variants, given.origins
    assert (engine.profile.alpha_ms, engine.profile.kv_tokens) == (13.2, 160_000)
    assert engine.start_up_seconds == 140.0
    assert {origins.step_times, origins.kv_tokens, origins.start_up} == {Origin.LEARNED}
    assert engine.profile.max_num_seqs == 48


def test_start_up_times_are_those_of_the_pods() -> None:
    """From their start on a node until they were ready."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "chat-1",
            "namespace": "default",
            "labels": {"pod-template-hash": "1"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat-1", "controller": True}
            ],
        },
        "spec": {"containers": []},
        "status": {
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:35Z"}],
        },
    }
    given = _of_engine([], pod, model="meta/llama-3.2-3b")

    assert given.scenario is not None
    assert given.scenario.variants[0].start_up_seconds == 95.0
    assert given.origins[0].start_up is Origin.PODS


def test_nodes_are_without_what_other_pods_hold() -> None:
    """A node whose accelerators are all held is not one of the scenario."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}

    def pod(number: int, node: str) -> Manifest:
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": limits}]}
        metadata = {"name": f"other-{number}", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}

    full, partly = l4_node("full"), l4_node("partly")
    count = int(full["status"]["allocatable"]["nvidia.com/gpu"])
    given = _read(
        variant("chat"),
        full,
        partly,
        pod(0, "partly"),
        *(pod(number, "full") for number in range(1, count + 1)),
    )

    assert given.scenario is not None
    assert sorted(group.accelerators for group in given.scenario.nodes) == [count - 1, count]


def test_a_scaled_object_of_a_variant_has_its_bounds_and_is_kept() -> None:
    """For the policy `hpa`; the HorizontalPodAutoscaler that KEDA creates is not needed."""
    scaled = scaled_object("other", "chat", minReplicaCount=2, maxReplicaCount=5)
    scaled["metadata"]["namespace"] = "default"
    scaled["metadata"]["annotations"] = {}
    given = _of_engine([], scaled, model="meta/llama-3.2-3b")

    assert given.scenario is not None
    assert given.manifests is not None
    (read_variant,) = given.scenario.variants
    assert (read_variant.min_replicas, read_variant.max_replicas) == (2, 5)
    assert given.manifests.variants["chat"].scaled_object is not None
    assert not any("no HorizontalPodAutoscaler" in text for text in given.warnings)


def test_models_of_one_name_in_two_namespaces_are_refused() -> None:
    """They have a load each: together they would be another model than the planner sees."""
    elsewhere = deployment("other", product="NVIDIA-L4", accelerators=1)
    asking = variant("other")
    for item in (elsewhere, asking):
        item["metadata"]["namespace"] = "prod"

    given = _read(variant("chat"), elsewhere, asking)

    assert given.scenario is None
    assert given.problems == (
        "model meta/llama-3.1-8b is in several namespaces; variants and models of default and prod cannot be"
        " simulated together: export deploy, hpa and va with -n for one namespace at a time, and nodes, pods"
        " and cm with -A",
    )


def test_variants_of_one_name_in_two_namespaces_are_refused() -> None:
    """Both namespaces are named."""
    elsewhere = deployment("chat", product="NVIDIA-L4", accelerators=1)
    asking = variant("chat", modelID="another")
    for item in (elsewhere, asking):
        item["metadata"]["namespace"] = "prod"

    given = _read(variant("chat"), elsewhere, asking)

    assert given.scenario is None
    assert any("of default and prod cannot be simulated together" in text for text in given.problems)


def test_engines_of_an_export_without_variants_are_simulated(simulate: Simulate) -> None:
    """One variant is assumed for each Deployment, and said so in the warnings and in JSON."""
    workload = deployment("chat", product="NVIDIA-L4", accelerators=1)
    workload["spec"]["template"]["spec"]["containers"][0]["args"] = ["--model=meta-llama/Llama-3.2-3B"]
    nameless = deployment("dark", product="NVIDIA-L4", accelerators=1)
    Path("live.json").write_text(listed(l4_node("n"), workload, nameless))
    Path("trace.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,10\n20,100,10\n")

    code, out, _ = simulate("-f", "live.json", "--trace", "trace.csv", "--policy", "constant:1", "-o", "json")

    found = json.loads(out)
    assert code == 0
    assert found["assumed"] == ["Deployment default/chat"]
    assert [item["model_id"] for item in found["scenario"]["models"]] == ["meta-llama/Llama-3.2-3B"]
    assert sum("1 variant is assumed" in text for text in found["warnings"]) == 1
    assert any("Deployment default/dark" in text for text in found["warnings"])


def test_an_export_without_engines_is_refused(simulate: Simulate) -> None:
    """What to export is said."""
    Path("live.json").write_text(listed(l4_node("n")))

    code, _, errors = simulate("-f", "live.json")

    assert code == 2
    assert "nothing to simulate: the input contains no VariantAutoscaling" in errors[0]
