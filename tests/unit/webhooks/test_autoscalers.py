"""`/validate-autoscalers`: warnings about annotated HorizontalPodAutoscalers."""

from __future__ import annotations

import json

import pytest
from support.annotated import hpa, made_by_keda
from support.logs import capture_logs

from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.schema.json import Json
from webhooks.autoscalers import advise
from webhooks.review import AdmissionResponse, decode_admission

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
    return await advise(decode_admission(json.dumps(review).encode()))


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
