"""Admission of settings and of annotated autoscalers."""

from __future__ import annotations

import json

import pytest
from support.annotated import hpa, made_by_keda
from support.logs import capture_logs

from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.kinds.settings_names import ALLOW_EMPTY, NamesConfig
from apiserver.schema.json import Json
from webhooks.judging import SettingsAdmission, advise_on_autoscaler
from webhooks.review import AdmissionResponse, decode_admission

CLASSES, PRICES = "service-classes-config", "accelerator-unit-costs"
GOOD = "name: Premium\npriority: 1\ndata:\n- {model: llama, slo-tpot: 24}\n"


def config_map(data: Json | None, name: str = CLASSES, **metadata: object) -> Json:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name} | metadata, "data": data}


def judge(sent: Json, old: Json | None = None, *, namespace: str = "stowplan-system") -> AdmissionResponse:
    """Return the response to a write."""
    request = {
        "uid": "u",
        "operation": "UPDATE" if old else "CREATE",
        "namespace": namespace,
        "object": sent,
        "oldObject": old,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    admission = SettingsAdmission(namespace="stowplan-system", names=NamesConfig())
    return admission.judge(decode_admission(json.dumps(review).encode()))


REFUSED: dict[str, tuple[Json, str]] = {
    "a priority in words": (
        config_map({"a": "priority: one"}),
        'ConfigMap "service-classes-config" is invalid: data[a].priority: Invalid value: "one": must be an'
        " integer",
    ),
    "a cost in words": (
        config_map({"H100": '{"cost": "a lot"}'}, PRICES),
        'ConfigMap "accelerator-unit-costs" is invalid: data[H100].cost: Invalid value: "a lot": must be a'
        " number from 0 to 1000000000, such as 40.00",
    ),
    "a misspelt target": (
        config_map({"a": "priority: 1\ndata: [{model: m, slo-tttf: 3}]"}),
        'ConfigMap "service-classes-config" is invalid: data[a].data[0].slo-tttf: Forbidden: unknown field'
        " (is slo-ttft meant?); allowed are model, slo-tpot, slo-ttft",
    ),
}


@pytest.mark.parametrize(("sent", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_settings_that_cannot_be_used_as_written_are_rejected(sent: Json, message: str) -> None:
    """The message is the one that `stowplan check` and the condition have."""
    refusal = judge(sent).refusal

    assert refusal is not None
    assert (refusal["code"], refusal["message"]) == (422, message)


ALLOWED: dict[str, tuple[Json, Json | None, str]] = {
    "valid settings": (config_map({"a": GOOD}), None, "stowplan-system"),
    "none yet": (config_map(None), None, "stowplan-system"),
    "a ConfigMap with another name": (config_map({"a": "priority: one"}, "gold"), None, "stowplan-system"),
    "a ConfigMap in another namespace": (config_map({"a": "priority: one"}), None, "tenant"),
    "nothing left, on purpose": (
        config_map({}, annotations={ALLOW_EMPTY: "true"}),
        config_map({"a": GOOD}),
        "stowplan-system",
    ),
}


@pytest.mark.parametrize(("sent", "old", "namespace"), ALLOWED.values(), ids=ALLOWED.keys())
def test_everything_else_is_admitted_without_a_warning(sent: Json, old: Json | None, namespace: str) -> None:
    """This webhook concerns the two ConfigMaps only."""
    assert judge(sent, old, namespace=namespace) == AdmissionResponse()


def test_an_entry_that_was_invalid_before_does_not_hinder_a_change_of_others() -> None:
    """It causes a warning."""
    old = config_map({"a": "priority: one"})

    response = judge(config_map({"a": "priority: one", "b": GOOD}), old)

    assert response.refusal is None
    assert response.warnings == ('data[a].priority: Invalid value: "one": must be an integer',)


def test_removing_everything_warns_that_the_last_valid_content_stays() -> None:
    """The warning says how to give it up."""
    (warning,) = judge(config_map({}), config_map({"a": GOOD})).warnings

    assert warning.startswith("data: the last valid content stays in force: ")
    assert ALLOW_EMPTY in warning


@pytest.mark.parametrize("data", [[], "text", {"a": 1}])
def test_content_that_no_api_server_would_send_is_rejected(data: Json) -> None:
    """It is not decoded."""
    refusal = judge(config_map(data)).refusal

    assert refusal is not None
    assert refusal["message"].startswith("the object cannot be read: ")


OWNER: Json = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "name": "llama",
    "controller": True,
}


def with_metric(**external: Json) -> Json:
    """Return an annotated autoscaler with changes of its external metric."""
    value = hpa("chat")
    value["spec"]["metrics"][0]["external"] |= external
    return value


async def response(value: object, operation: str = "UPDATE") -> AdmissionResponse:
    """Return the response to a write."""
    request = {"uid": "u", "operation": operation, "namespace": "ns", "object": value, "oldObject": value}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return await advise_on_autoscaler(decode_admission(json.dumps(review).encode()))


WARNED: dict[str, tuple[Json, str]] = {
    "a negative cost": (
        hpa("chat", terms={"llm-d.ai/variant-cost": "-5"}),
        'metadata.annotations[llm-d.ai/variant-cost]: Invalid value: "-5": must be a non-negative decimal'
        " number such as 10 or 10.5",
    ),
    "no model": (
        hpa("chat", terms={"llm-d.ai/model-id": ""}),
        'metadata.annotations[llm-d.ai/model-id]: Invalid value: "": must be at least 1 character long',
    ),
    "another word": (
        hpa("chat", terms={"llm-d.ai/managed": "True"}),
        "metadata.annotations[llm-d.ai/managed]: only 'true' lets it be planned, was 'True'",
    ),
    "a word as long as a page": (
        hpa("chat", terms={"llm-d.ai/managed": "y" * 4000}),
        f"metadata.annotations[llm-d.ai/managed]: only 'true' lets it be planned, was '{'y' * 40}…'",
    ),
    "a misspelt order": (
        hpa("chat", terms={"stowplan.dev/pause": "true"}),
        "metadata.annotations[stowplan.dev/pause]: has no effect on a HorizontalPodAutoscaler: is"
        " stowplan.dev/paused meant?",
    ),
    "a target of type Value": (
        with_metric(target={"type": "Value", "value": "1"}),
        "HorizontalPodAutoscaler 'chat' reads wva_desired_replicas with a target of type Value, which"
        " multiplies it by the running replicas: use type AverageValue with 1: kubectl patch hpa chat"
        ' --type=json --patch=\'[{"op": "replace", "path": "/spec/metrics/0/external/target", "value":'
        ' {"type": "AverageValue", "averageValue": "1"}}]\'',
    ),
    "a target of type Value in an object of KServe": (
        {
            **with_metric(target={"type": "Value", "value": "1"}),
            "metadata": {**hpa("chat")["metadata"], "ownerReferences": [OWNER]},
        },
        "HorizontalPodAutoscaler 'chat' reads wva_desired_replicas with a target of type Value, which"
        " multiplies it by the running replicas: use type AverageValue with 1; LLMInferenceService 'llama'"
        " writes it and would undo a change: correct it there",
    ),
    "the name of another variant": (
        with_metric(
            metric={"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": "code"}}}
        ),
        "the selector of wva_desired_replicas in HorizontalPodAutoscaler 'chat' requires variant_name=code,"
        " and the metric of this object has variant_name=chat: select variant_name: chat",
    ),
}


@pytest.mark.parametrize("name", WARNED)
async def test_what_is_wrong_is_a_warning(name: str) -> None:
    """It is never rejected."""
    value, want = WARNED[name]
    answer = await response(value)

    assert answer.refusal is None
    assert answer.warnings == (want,)


UNWARNED: dict[str, Json] = {
    "a right one": hpa("chat", terms={"llm-d.ai/variant-cost": "5", "stowplan.dev/decision": "{}"}),
    "one that has opted out": hpa("chat", terms={"llm-d.ai/managed": "false", "llm-d.ai/model-id": ""}),
    "the copy of KEDA": made_by_keda("chat", "chat"),
    "the copy of KEDA with a mistake, about which the ScaledObject is warned": hpa(
        "keda-hpa-chat", terms={"llm-d.ai/managed": "True"}, labels={KEDA_LABEL: "chat"}
    ),
    "one whose name is not known yet": {
        **hpa("chat"),
        "metadata": {**hpa("chat")["metadata"], "name": None, "generateName": "chat-"},
    },
}


@pytest.mark.parametrize("name", UNWARNED)
async def test_nothing_else_is_a_warning(name: str) -> None:
    """The selectors of a generated name are checked by the controller."""
    assert await response(UNWARNED[name]) == AdmissionResponse()


async def test_an_object_that_cannot_be_read_is_allowed() -> None:
    """Whoever reaches the webhook may send anything; the log has the error."""
    value = hpa("chat") | {"spec": {"maxReplicas": "many"}}

    with capture_logs() as lines:
        assert await response(value) == AdmissionResponse()
    assert [line["event"] for line in lines] == ["no advice about an autoscaler"]
    assert await response(None, "DELETE") == AdmissionResponse()
