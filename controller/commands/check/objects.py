"""Output of values as YAML that kubectl reads as the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from apiserver.schema.json import Json, JsonValue
from controller.commands.check.scalars import is_text_unquoted

_NO_BREAKS: Final = 2**31 - 1

if TYPE_CHECKING:
    _Dumper = yaml.SafeDumper
else:
    _Dumper = yaml.CSafeDumper


class _ManifestDumper(_Dumper):
    """A dumper that quotes what go-yaml, and not only PyYAML, would misread, and writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True, to write every value out."""
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a node that is read as text again: unquoted `y`, `on` and `1e3` would not be."""
        style = None if is_text_unquoted(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_text)


def as_yaml(value: Json) -> str:
    """Return an object as a YAML document with its separator, members in their order."""
    return yaml.dump(
        value, Dumper=_ManifestDumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=1000
    )


def as_flow_yaml(value: JsonValue) -> str:
    """Return a list or mapping as YAML in flow style, such as `{a: 1, b: [2]}`."""
    text: str = yaml.dump(
        value,
        Dumper=_ManifestDumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=_NO_BREAKS,
    )
    return text.removesuffix("\n")
