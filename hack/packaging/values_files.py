"""The files of the chart that describe its values: `values.yaml`, `values.schema.json` and `README.md`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Final

import yaml

from apiserver.schema.editor import DIALECT, settings_schema
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Property, SchemaNode, node_of, summary
from hack.packaging import values
from hack.packaging.pod_values import Image
from hack.packaging.values import ChartValues

_COLUMNS: Final = 110
_GLOBAL: Final[Json] = {
    "type": "object",
    "description": "What Helm gives every chart below another one; not used.",
}
_README: Final = """\
# {name}

{description}

```sh
helm install {name} {name}-{version}.tgz --namespace stowplan-system --create-namespace --values values.yaml
```

A misspelt value is refused. Pages such as docs/installing.md and manifests/reference are in the repository;
values for common clusters are in manifests/values.

## Values

| Value | Description | Default |
| --- | --- | --- |
{rows}
"""


def values_file(shipped: Json) -> str:
    """Return `values.yaml`, with a comment above every value. `shipped` has the values without a default."""
    return "\n".join(_lines(node_of(ChartValues), shipped)).lstrip("\n") + "\n"


def values_schema() -> str:
    """Return `values.schema.json`, which rejects undeclared names."""
    schema = settings_schema(ChartValues)
    schema["properties"]["global"] = _GLOBAL
    return json.dumps({"$schema": DIALECT, **schema}, indent=1, ensure_ascii=False) + "\n"


def readme(shipped: Json, project: Json) -> str:
    """Return `README.md`, with a table of all values. `project` has name, version and description."""
    rows = "\n".join(_rows(node_of(ChartValues), shipped))
    fields = {name: project[name] for name in ("name", "version", "description")}
    return _README.format(rows=rows, **fields)


def _lines(node: SchemaNode, shipped: Json, pad: str = "") -> Iterator[str]:
    for index, prop in enumerate(node.properties):
        if index or not pad:
            yield ""
        prose = _prose(prop)
        yield from textwrap.wrap(
            prose,
            _COLUMNS,
            initial_indent=f"{pad}# ",
            subsequent_indent=f"{pad}# ",
            break_on_hyphens=False,
        )
        if _is_section(prop.node):
            yield f"{pad}{prop.name}:"
            yield from _lines(prop.node, shipped.get(prop.name, {}), f"{pad}  ")
        elif prop.name in shipped:
            yield textwrap.indent(yaml.safe_dump({prop.name: shipped[prop.name]}, sort_keys=False), pad)[:-1]
        else:
            yield f"{pad}{prop.name}: {json.dumps(_default(prop))}"


def _rows(node: SchemaNode, shipped: Json, prefix: str = "") -> Iterator[str]:
    for prop in node.properties:
        name = f"{prefix}{prop.name}"
        if _is_section(prop.node):
            yield from _rows(prop.node, shipped.get(prop.name, {}), f"{name}.")
            continue
        default = json.dumps(shipped.get(prop.name, _default(prop)))
        prose = " ".join(_prose(prop).split()).replace("|", "\\|")
        yield f"| `{name}` | {prose} | `{default}` |"


def _prose(prop: Property) -> str:
    declared = prop.node.declared
    return prop.description or (summary(declared) if declared is not None else "")


def _default(prop: Property) -> JsonValue:
    """Return the default of a value; unset fields of a configuration have the defaults of the process."""
    return prop.default if prop.has_default and prop.node.declared is None else {}


def _is_section(node: SchemaNode) -> bool:
    """Tell whether a value is shown by its members; other objects are shown as one value."""
    declared = node.declared
    return declared is not None and (declared.__module__ == values.__name__ or declared is Image)
