"""Annotations of Stowplan and of llm-d: which kind has which, their values, and what is wrong with them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.annotated import TERMS, hpa, made_by_keda, scaled_object
from support.gathering import placed
from support.manifests import autoscaler

from apiserver.kinds.activity import (
    ActivityQuery,
    ActivitySeries,
    ActivitySource,
    activity_problems,
    activity_source,
)
from apiserver.kinds.annotated import cost_of, managed_autoscalers, model_of, term_problems
from apiserver.kinds.annotations import UNDERSTOOD, annotation_advice
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.decision_record import read_record, record_text
from apiserver.kinds.registry import KINDS
from apiserver.schema.json import Json

VARIANT = "VariantAutoscaling"
CASES = {
    "a misspelt name": (
        VARIANT,
        {"stowplan.dev/pause": "true"},
        "metadata.annotations[stowplan.dev/pause]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/paused meant?",
    ),
    "a misspelt prefix": (
        VARIANT,
        {"stowpan.dev/replicas": "3"},
        "metadata.annotations[stowpan.dev/replicas]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/replicas meant?",
    ),
    "a prefix with two letters exchanged": (
        VARIANT,
        {"stowplna.dev/replicas": "3"},
        "metadata.annotations[stowplna.dev/replicas]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/replicas meant?",
    ),
    "a name that resembles none": (
        "ModelServer",
        {"stowplan.dev/zzz": "x"},
        "metadata.annotations[stowplan.dev/zzz]: has no effect on a ModelServer: the annotations are"
        " stowplan.dev/endpoint-picker",
    ),
    "an annotation of another kind": (
        "ModelRoute",
        {"stowplan.dev/paused": "true"},
        "metadata.annotations[stowplan.dev/paused]: has no effect on a ModelRoute: the annotations are"
        " stowplan.dev/parent-refs, stowplan.dev/request-priority",
    ),
    "a kind without annotations": (
        "InferenceObjective",
        {"stowplan.dev/paused": "true"},
        "metadata.annotations[stowplan.dev/paused]: has no effect on an InferenceObjective: it has no"
        " annotations of Stowplan",
    ),
    "a value that is not allowed": (
        VARIANT,
        {"stowplan.dev/replicas": "abc"},
        "metadata.annotations[stowplan.dev/replicas]: must be a whole number from 0 to 1000000, was 'abc',"
        " and is ignored: correct or remove it",
    ),
    "a valid one": (VARIANT, {"stowplan.dev/paused": "true"}, ""),
    "one that a process records": (VARIANT, {WRITTEN_BY: "{}"}, ""),
    "one of another project": (VARIANT, {"kubectl.kubernetes.io/last-applied-configuration": "{}"}, ""),
    "none": (VARIANT, None, ""),
}


@pytest.mark.parametrize(("kind", "annotations", "warning"), CASES.values(), ids=CASES.keys())
def test_an_annotation_without_effect_causes_a_warning(
    kind: str, annotations: dict[str, str] | None, warning: str
) -> None:
    """It names the nearest annotation of the kind."""
    found = [*annotation_advice(kind, {"metadata": {"annotations": annotations}})]

    assert found == ([warning] if warning else [])


def test_every_kind_with_annotations_is_served_or_an_autoscaler() -> None:
    """A name in the table that is misspelt would switch the warnings off."""
    assert {*UNDERSTOOD} <= {kind.kind for kind in KINDS} | {"HorizontalPodAutoscaler", "ScaledObject"}


ACTIVITIES = {
    "a series by its name": (
        "app=router:9090/metrics queue_size",
        ActivitySeries(labels={"app": "router"}, port=9090, path="/metrics", series="queue_size"),
    ),
    "several labels, and a model": (
        'app.kubernetes.io/name=epp,pool=a:80/ queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ActivitySeries(
            labels={"app.kubernetes.io/name": "epp", "pool": "a"},
            port=80,
            path="/",
            series='queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ),
    ),
    "an expression of Prometheus": (
        'prometheus: sum(queue_size{model="llama"}) > 2',
        ActivityQuery(expression='sum(queue_size{model="llama"}) > 2'),
    ),
}

NOT_UNDERSTOOD = {
    "nothing": "",
    "no labels": ":9090/metrics queue_size",
    "a host": "router.example.com:9090/metrics queue_size",
    "no path": "app=router:9090 queue_size",
    "a path with dots": "app=router:9090/../secret queue_size",
    "a path with a query": "app=router:9090/metrics?x=1 queue_size",
    "a port above the maximum": "app=router:65536/metrics queue_size",
    "port zero": "app=router:0/metrics queue_size",
    "no series": "app=router:9090/metrics",
    "a PromQL expression": "app=router:9090/metrics sum(queue_size)",
    "a matcher with another operator": 'app=router:9090/metrics queue_size{model=~".*"}',
    "no expression": "prometheus: ",
    "an expression of two lines": "prometheus: sum(\nqueue_size)",
    "two lines": "app=router:9090/metrics queue_size\nmore",
}


def annotated(text: object) -> Json:
    """Return a binding with this value of the annotation."""
    return {"metadata": {"annotations": {"stowplan.dev/activity": text}}, "spec": {}}


@pytest.mark.parametrize(("text", "want"), ACTIVITIES.values(), ids=ACTIVITIES.keys())
def test_a_valid_annotation_names_pods_a_metrics_page_and_a_series(text: str, want: ActivitySource) -> None:
    """Pods are selected by their labels; the series is on one page of each."""
    assert activity_source(annotated(text)) == want
    assert activity_problems(annotated(text)) == []


@pytest.mark.parametrize("text", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_an_invalid_annotation_is_ignored_and_causes_a_warning(text: str) -> None:
    """Admission cannot reject an annotation, and it must not make anything but pods be read."""
    assert activity_source(annotated(text)) is None
    (problem,) = activity_problems(annotated(text))
    assert problem.startswith(
        "metadata.annotations[stowplan.dev/activity]: must be LABEL=VALUE:PORT/PATH SERIES"
    )


@given(st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text())))
def test_no_value_of_the_annotation_raises_an_exception(text: object) -> None:
    """Every value is either parsed or ignored."""
    source = activity_source(annotated(text))

    assert not isinstance(source, ActivitySeries) or 0 < source.port < 65536


MODEL = "metadata.annotations[llm-d.ai/model-id]: "
COST = "metadata.annotations[llm-d.ai/variant-cost]: "
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an empty model": (
        {"llm-d.ai/model-id": ""},
        f'{MODEL}Invalid value: "": must be at least 1 character long',
    ),
    "a negative cost": (
        {"llm-d.ai/variant-cost": "-5"},
        f'{COST}Invalid value: "-5": must be a non-negative decimal number such as 10 or 10.5',
    ),
    "a cost that is no number": (
        {"llm-d.ai/variant-cost": "cheap"},
        f'{COST}Invalid value: "cheap": must be a non-negative decimal number such as 10 or 10.5',
    ),
    "a misspelt name": (
        {"llm-d.ai/variant_cost": "5"},
        "metadata.annotations[llm-d.ai/variant_cost]: has no effect: is llm-d.ai/variant-cost meant?",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_path(name: str) -> None:
    """A cost that is not allowed counts as absent."""
    terms, want = WRONG[name]
    value = hpa("chat", terms=terms)

    assert list(term_problems(value)) == [want]
    assert cost_of(value) is None
    assert bool(model_of(value)) == (not want.startswith(MODEL))


def test_a_missing_model_is_required() -> None:
    """It is told like an empty one."""
    value = placed(autoscaler("chat"), annotations={"llm-d.ai/managed": "true"})

    assert list(term_problems(value)) == [f"{MODEL}Required value"]
    assert model_of(value) == ""


def test_the_right_terms_have_no_problems() -> None:
    """Annotations of others are no concern."""
    value = hpa("chat", terms={"llm-d.ai/variant-cost": "12.50", "llm-d.ai/deployed-by": "helm"})

    assert list(term_problems(value)) == []
    assert (model_of(value), cost_of(value)) == (TERMS["llm-d.ai/model-id"], Decimal("12.50"))


def test_only_autoscalers_with_the_value_true_are_managed() -> None:
    """The copy that KEDA makes of a ScaledObject is not, since the ScaledObject is."""
    others = [hpa(text, terms={"llm-d.ai/managed": text}) for text in ("false", "True", "yes", "")]
    scaled = [scaled_object("chat", "chat"), scaled_object("other", "x", terms={"llm-d.ai/managed": "no"})]
    autoscalers = [*others, made_by_keda("chat", "chat"), hpa("code")]

    assert [item["metadata"]["name"] for item in managed_autoscalers(autoscalers, scaled)] == ["code", "chat"]


STATUS = {"decision": {"reason": "Steady", "message": "ä"}}
NO_RECORDS = {
    "nothing": None,
    "no text": "",
    "no JSON": "{",
    "another JSON value": "[]",
    "another object": "{}",
    "a status that is none": '{"kind":"K","name":"n","labels":{},"status":{"decision":3}}',
    "deep nesting": "[" * 100_000,
}


def test_a_record_is_read_as_it_was_written() -> None:
    """Each of its characters is one byte."""
    text = record_text(hpa("chat"), {"model_id": "m"}, STATUS)

    record = read_record(text)
    assert (record["kind"], record["name"]) == ("HorizontalPodAutoscaler", "chat")
    assert (record["labels"], record["status"]) == ({"model_id": "m"}, STATUS)
    assert len(text) == len(text.encode())


@pytest.mark.parametrize("name", NO_RECORDS)
def test_what_is_no_record_is_read_as_an_empty_one(name: str) -> None:
    """Users of the namespace can write anything."""
    assert read_record(NO_RECORDS[name]) == {}
