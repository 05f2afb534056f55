"""One refusal names all that is wrong: in the spec, in metadata, and where text is nested without end."""

from __future__ import annotations

import json

import pytest
from support.reviews import ANYBODY, NOBODY, mutate, review, variant

from apiserver.schema.json import Json
from webhooks.depth import LEVELS, without_depths
from webhooks.mutate import mutate as ask_mutate
from webhooks.review import AdmissionRequest, decode_admission
from webhooks.validate import validate as ask_validate

DEPTHS = (101, 150, 300, 1000, 5000, 9900)
"""Of the value of `config`, beyond the 100 that are allowed; servers take 9,900."""


def causes(refusal: Json | None) -> list[tuple[str, str]]:
    """Return field and message of everything that is wrong."""
    return [(cause["field"], cause["message"]) for cause in refusal["details"]["causes"]] if refusal else []


def fields(refusal: Json | None) -> list[str]:
    """Return the fields that are wrong."""
    return [field for field, _ in causes(refusal)]


def test_metadata_are_told_of_beside_the_spec() -> None:
    """Labels and annotations first, as the server would name them once the spec is mended."""
    bad = variant(accelerator="") | {
        "metadata": {"name": "v", "labels": {"a b": "ok", "app": "-"}, "annotations": {"/x": "y"}}
    }

    found = fields(mutate(review(bad)).refusal)

    assert found == [
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
        "spec.accelerator",
    ]


def test_metadata_alone_are_left_to_the_server() -> None:
    """It refuses them in its own words."""
    bad = variant() | {"metadata": {"name": "v", "labels": {"app": "-"}}}

    assert mutate(review(bad)).refusal is None


def model(*, config: str, image: str = "x") -> bytes:
    """Return the review of a create of a Model with a worker whose config is this text."""
    worker = {"image": image, "config": "CONFIG"}
    backend = {"name": "b", "type": "vLLM", "modelURI": "hf://a/b", "minReplicas": 1, "maxReplicas": 1}
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "m"},
        "spec": {"backends": [backend | {"workers": [worker]}]},
    }
    request = {"uid": "u", "operation": "CREATE", "namespace": "ns", "object": value, "oldObject": None}
    text = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    return text.replace('"CONFIG"', config).encode()


def nested(levels: int) -> str:
    """Return JSON text of lists and objects by turns, so many levels deep."""
    half = levels // 2
    return '{"a":[' * half + "[0]" * (levels % 2) + "]}" * half


async def refusals(request: AdmissionRequest) -> list[Json | None]:
    """Return what both webhooks say."""
    mutated = await ask_mutate(request, ANYBODY)
    return [mutated.refusal, (await ask_validate(request, ANYBODY, NOBODY)).refusal]


@pytest.mark.parametrize("levels", DEPTHS)
async def test_a_config_nested_without_end_is_refused_at_its_field(levels: int) -> None:
    """However deep, and beside what else is wrong."""
    request = decode_admission(model(config=nested(levels), image="a b"))

    for refusal in await refusals(request):
        where = "spec.backends[0].workers[0]"
        assert refusal is not None
        assert refusal["code"] == 422
        assert causes(refusal) == [
            (f"{where}.image", 'Invalid value: "a b": must not contain whitespace'),
            (f"{where}.config", 'Invalid value: "...": must not be nested more than 100 levels deep'),
        ]


async def test_a_config_within_the_bound_is_taken() -> None:
    """A hundred levels are."""
    request = decode_admission(model(config=nested(100)))

    assert await refusals(request) == [None, None]


CUT = {
    "shallow text stays": (b'{"a": ["]]]]", {"b": 1}]}', b'{"a": ["]]]]", {"b": 1}]}'),
    "what is deeper is null": (
        b"[" * LEVELS + b"[[1], 2], 3" + b"]" * LEVELS,
        b"[" * LEVELS + b"null, 3" + b"]" * LEVELS,
    ),
    "each of several": (
        b"[" * LEVELS + b'{"}": "]"}, {}, 4' + b"]" * LEVELS,
        b"[" * LEVELS + b"null, null, 4" + b"]" * LEVELS,
    ),
    "text that ends early does so": (b"[" * (LEVELS + 9), b"[" * LEVELS + b"null"),
    "an escaped quote ends no text": (rb'["\"[", "\\", []]', rb'["\"[", "\\", []]'),
}


@pytest.mark.parametrize(("text", "want"), CUT.values(), ids=CUT.keys())
def test_text_is_cut_at_a_depth(text: bytes, want: bytes) -> None:
    """Nothing else is changed."""
    assert without_depths(text) == want
