"""Templates of the Helm chart, from the differences between the forms of an object."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.templating import Each, Expression, template

FORMS: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]], str]] = {
    "equal values are literal": ({"a": 1}, {"x": {"a": 1}}, "a: 1\n"),
    "an expression as a value": ({"a": Expression("toJson .b")}, {}, "a: {{ toJson .b }}\n"),
    "an expression as an item of a list": ({"a": [Expression(".b")]}, {}, "a:\n- {{ .b }}\n"),
    "a changed value": ({"a": "no"}, {"x": {"a": "yes"}}, 'a: {{ if x }}"yes"{{ else }}"no"{{ end }}\n'),
    "an added member": ({"a": 1}, {"x": {"a": 1, "b": 2}}, "a: 1\n{{- if x }}\nb: 2\n{{- end }}\n"),
    "a removed member": (
        {"a": 1, "b": 2},
        {"x": {"b": 2}},
        "{{- if not (or (x)) }}\na: 1\n{{- end }}\nb: 2\n",
    ),
    "added items with separate conditions": (
        {"a": ["1"]},
        {"x": {"a": ["1", "2"]}, "y": {"a": ["1", "3"]}},
        "a:\n- '1'\n{{- if x }}\n- '2'\n{{- end }}\n{{- if y }}\n- '3'\n{{- end }}\n",
    ),
    "items of a value at the end of a list": (
        {"a": ["1", Each(".b")]},
        {"x": {"a": ["1", "2", Each(".b")]}},
        "a:\n- '1'\n{{- if x }}\n- '2'\n{{- end }}\n{{- range .b }}\n- {{ toJson . }}\n{{- end }}\n",
    ),
    "an action in a text is escaped": ({"a": "{{ b }}"}, {}, "a: '{{ \"{{\" }} b }}'\n"),
}


@pytest.mark.parametrize(("shipped", "variants", "text"), FORMS.values(), ids=FORMS)
def test_the_template_contains_the_differences_of_the_forms(
    shipped: dict[str, Any], variants: dict[str, Any], text: str
) -> None:
    """Conditions occur only where forms differ."""
    assert template(shipped, variants) == text


REFUSED: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "two conditions add the same member": ({}, {"x": {"a": 1}, "y": {"a": 2}}),
    "a condition for the first member of an item": ({"a": [{"b": 1, "c": 2}]}, {"x": {"a": [{"c": 2}]}}),
}


@pytest.mark.parametrize(("shipped", "variants"), REFUSED.values(), ids=REFUSED)
def test_differences_that_cannot_be_expressed_are_rejected(
    shipped: dict[str, Any], variants: dict[str, Any]
) -> None:
    """Otherwise, the template would render a wrong object."""
    with pytest.raises(ValueError, match="condition"):
        template(shipped, variants)
