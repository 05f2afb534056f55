"""A Helm template from an object and its variants under conditions.

A tree is dumped as YAML with placeholders for what Helm fills in, which are then replaced by actions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from apiserver.schema.json import Json, JsonValue

_LINE: Final = re.compile(r"^ *(?:- )?'@line (\d+)@'(?:: null)?$", re.MULTILINE)
_VALUE: Final = re.compile(r"'@value (\d+)@'")
_UNFIT: Final = re.compile(r"^ *- '@line \d+@': null$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Expression:
    """A placeholder for a value: the text of an action that renders it as JSON, a subset of YAML."""

    text: str


@dataclass(frozen=True, slots=True)
class Each:
    """A placeholder at the end of a list: the text of an expression for a list, whose items are appended."""

    text: str


def template(shipped: Json, variants: Mapping[str, Json]) -> str:
    """Return the template of an object, with a variant for each condition.

    Variants may differ in members, in items appended to a list, and in values. If several conditions hold,
    all take effect, like components do. A list that ends with Each does so in all variants. Raises ValueError
    for other differences.
    """
    actions = _Actions()
    tree = actions.merge(shipped, {key: value for key, value in variants.items() if value != shipped})
    text = yaml.safe_dump(tree, sort_keys=False, width=1 << 20, allow_unicode=True)
    if _UNFIT.search(text):
        raise ValueError(f"the first member of a list's item depends on a condition:\n{text}")
    text = text.replace("{{", '{{ "{{" }}')
    for mark in (_LINE, _VALUE):
        text = mark.sub(lambda match: actions.texts[int(match[1])], text)
    return text


class _Actions:
    """Joins the variants of a tree, and keeps the texts of its placeholders."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def merge(self, shipped: JsonValue, variants: Mapping[str, JsonValue]) -> JsonValue:
        """Return a tree with placeholders; every variant differs from the shipped form."""
        forms = [shipped, *variants.values()]
        if all(isinstance(form, dict) for form in forms):
            return self._members(shipped, variants)
        if all(isinstance(form, list) and len(form) >= len(shipped) for form in forms):
            return self._items(shipped, variants)
        if variants:
            ways = [f"{{{{ if {key} }}}}{self._text_of(value)}" for key, value in variants.items()]
            return self._value(
                f"{'{{ else }}'.join([*ways, self._text_of(shipped)])}{'{{ end }}' * len(ways)}"
            )
        return self._value(self._text_of(shipped)) if isinstance(shipped, Expression) else shipped

    def _members(self, shipped: Json, variants: Mapping[str, Json]) -> Json:
        tree: Json = {}
        for key, value in shipped.items():
            without = [condition for condition, form in variants.items() if key not in form]
            others = {
                condition: form[key]
                for condition, form in variants.items()
                if key in form and form[key] != value
            }
            if without:
                tree[self._line(f"if not (or {' '.join(f'({item})' for item in without)})")] = None
            tree[key] = self.merge(value, others)
            if without:
                tree[self._line("end")] = None
        for condition, form in variants.items():
            for key in (added for added in form if added not in shipped):
                if key in tree:
                    raise ValueError(f"two conditions add {key}, one of them {condition}")
                tree[self._line(f"if {condition}")] = None
                tree[key] = self.merge(form[key], {})
                tree[self._line("end")] = None
        return tree

    def _items(self, shipped: list[JsonValue], variants: Mapping[str, list[JsonValue]]) -> list[JsonValue]:
        if shipped and isinstance(shipped[-1], Each):
            each = self._line(f"range {shipped[-1].text}"), self._value("{{ toJson . }}"), self._line("end")
            return [*self._items(shipped[:-1], {key: form[:-1] for key, form in variants.items()}), *each]
        tree: list[JsonValue] = []
        for index, value in enumerate(shipped):
            others = {key: form[index] for key, form in variants.items() if form[index] != value}
            tree.append(self.merge(value, others))
        for condition, form in variants.items():
            if added := form[len(shipped) :]:
                tree += [self._line(f"if {condition}"), *(self.merge(item, {}) for item in added)]
                tree.append(self._line("end"))
        return tree

    def _line(self, text: str) -> str:
        self.texts.append(f"{{{{- {text} }}}}")
        return f"@line {len(self.texts) - 1}@"

    def _value(self, text: str) -> str:
        self.texts.append(text)
        return f"@value {len(self.texts) - 1}@"

    @staticmethod
    def _text_of(value: JsonValue) -> str:
        return f"{{{{ {value.text} }}}}" if isinstance(value, Expression) else json.dumps(value)
