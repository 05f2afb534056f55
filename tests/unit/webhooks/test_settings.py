"""`/validate-settings`: ConfigMaps of service classes and prices."""

from __future__ import annotations

import json

import pytest

from apiserver.kinds.settings_names import ALLOW_EMPTY, NamesConfig
from apiserver.schema.json import Json
from webhooks.judging import SettingsAdmission
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
