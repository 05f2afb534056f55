"""Annotations about Gateways, and notes on invalid ones."""

from __future__ import annotations

import pytest
from support.routes import route, server

from apiserver.schema.json import Json
from controller.gateways.inputs import is_opted_in, parent_refs, picker_reference, priority

PARENTS = "stowplan.dev/parent-refs"
KIND = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ("inference", [{"name": "inference"}]),
        (
            "infra/inference , infra/inner/https",
            [
                {"name": "inference", "namespace": "infra"},
                {"name": "inner", "namespace": "infra", "sectionName": "https"},
            ],
        ),
        ("a/b/x,a/b/y", [{"name": "b", "namespace": "a", "sectionName": name} for name in "xy"]),
    ],
)
def test_gateways_are_converted_to_parent_references(text: str, parents: list[Json]) -> None:
    """They have the form of an HTTPRoute."""
    assert parent_refs(route(annotations={PARENTS: text}), None) == ([KIND | item for item in parents], [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a/b/c/d", "'a/b/c/d' is not NAME, NAMESPACE/NAME or NAMESPACE/NAME/LISTENER of a Gateway"),
        ("Infra", "'Infra' is not NAME, NAMESPACE/NAME or NAMESPACE/NAME/LISTENER of a Gateway"),
        ("a,", "'' is not NAME, NAMESPACE/NAME or NAMESPACE/NAME/LISTENER of a Gateway"),
        ("a,a", "Gateway 'a' is named more than once: name another listener each time"),
        ("n/a,n/a/x", "Gateway 'a' is named more than once: name another listener each time"),
        (",".join(f"g{number}" for number in range(33)), "33 Gateways: at most 32 are allowed"),
    ],
)
def test_an_invalid_reference_to_a_gateway_causes_a_note(text: str, said: str) -> None:
    """The note says what is allowed."""
    _, notes = parent_refs(route(annotations={PARENTS: text}), None)

    assert [str(note) for note in notes] == [f"metadata.annotations[{PARENTS}]: {said}"]


def test_the_annotation_of_a_route_overrides_that_of_its_namespace() -> None:
    """The namespace's annotation is the default; an empty text on the route opts out."""
    namespace = {"metadata": {"name": "ns", "annotations": {PARENTS: "infra/inference"}}}

    assert is_opted_in(route(), namespace)
    assert not is_opted_in(route(), None)
    assert not is_opted_in(route(annotations={PARENTS: ""}), namespace)
    assert parent_refs(route(annotations={PARENTS: "own"}), namespace)[0] == [KIND | {"name": "own"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("-3", -3), ("2147483647", 2**31 - 1), ("2147483648", None), ("high", None), ("", None)],
)
def test_a_priority_is_an_integer(text: str, value: int | None) -> None:
    """It has 32 bits."""
    found, notes = priority(route(annotations={"stowplan.dev/request-priority": text}))

    assert found == value
    assert bool(notes) == (value is None)


@pytest.mark.parametrize(
    ("name", "text", "picker"),
    [
        ("l4", None, ("l4-epp", 9002)),
        ("l4", "picker", ("picker", 9002)),
        ("l4", "picker:9100", ("picker", 9100)),
        ("l4", "picker:70000", None),
        ("l4", "Picker", None),
        ("with.dots", None, None),
        ("with.dots", "picker", ("picker", 9002)),
        ("x" * 60, None, None),
    ],
)
def test_an_endpoint_picker_is_a_service(name: str, text: str | None, picker: tuple[str, int] | None) -> None:
    """The default is the name in the Inference Extension's chart; some names are invalid for a Service."""
    annotations = {} if text is None else {"stowplan.dev/endpoint-picker": text}
    found, notes = picker_reference(server(name, annotations=annotations))

    if picker is None:
        assert "name the endpoint picker" in str(notes[0])
    else:
        assert (found["name"], found["port"]["number"]) == picker
