"""Templates say exactly what differs between the forms of an object."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.templating import Expression, template

FORMS: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]], str]] = {
    "what is the same in all forms stands there": ({"a": 1}, {"x": {"a": 1}}, "a: 1\n"),
    "an expression stands for a value": ({"a": Expression("toJson .b")}, {}, "a: {{ toJson .b }}\n"),
    "an expression may be an item of a list": ({"a": [Expression(".b")]}, {}, "a:\n- {{ .b }}\n"),
    "another value": ({"a": "no"}, {"x": {"a": "yes"}}, 'a: {{ if x }}"yes"{{ else }}"no"{{ end }}\n'),
    "a member more": ({"a": 1}, {"x": {"a": 1, "b": 2}}, "a: 1\n{{- if x }}\nb: 2\n{{- end }}\n"),
    "a member less": ({"a": 1, "b": 2}, {"x": {"b": 2}}, "{{- if not (or (x)) }}\na: 1\n{{- end }}\nb: 2\n"),
    "items more, each by its condition": (
        {"a": ["1"]},
        {"x": {"a": ["1", "2"]}, "y": {"a": ["1", "3"]}},
        "a:\n- '1'\n{{- if x }}\n- '2'\n{{- end }}\n{{- if y }}\n- '3'\n{{- end }}\n",
    ),
    "an action in a text is none": ({"a": "{{ b }}"}, {}, "a: '{{ \"{{\" }} b }}'\n"),
}


@pytest.mark.parametrize(("shipped", "variants", "text"), FORMS.values(), ids=FORMS)
def test_forms_of_an_object(shipped: dict[str, Any], variants: dict[str, Any], text: str) -> None:
    """Conditions are named where they matter, and nowhere else."""
    assert template(shipped, variants) == text


REFUSED: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "two conditions add one member": ({}, {"x": {"a": 1}, "y": {"a": 2}}),
    "the first member of an item": ({"a": [{"b": 1, "c": 2}]}, {"x": {"a": [{"c": 2}]}}),
}


@pytest.mark.parametrize(("shipped", "variants"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_told_is_refused(shipped: dict[str, Any], variants: dict[str, Any]) -> None:
    """Rather than rendered wrongly."""
    with pytest.raises(ValueError, match="condition"):
        template(shipped, variants)
