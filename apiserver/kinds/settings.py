"""The settings in ConfigMaps: service classes and prices of accelerators, one per key.

The controller, admission and `stowplan check` read them by the declarations here, and report the same errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import yaml
from msgspec import field

from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.document import document_errors, duplicate_fields
from apiserver.schema.errors import FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Items, Length, Pattern, Range
from apiserver.schema.paths import FieldPath

LATENCY_MOST_MS: Final = 10**8
"""Maximum latency target in ms, which is more than a day."""

_LIMIT_CHARACTERS: Final = 1 << 20
_MOST_VALUES: Final = 100_000
_COST: Final = r"^(0*[0-9]{1,9}(\.[0-9]+)?|1000000000(\.0+)?)$"
_COST_SAYS: Final = "a number from 0 to 1000000000, such as 40.00"
_EXAMPLE: Final = '{"device": "NVIDIA-A100", "cost": "40.00"}'

Milliseconds = Annotated[int, Range(1, LATENCY_MOST_MS)]


@declaration()
class ModelTargets:
    """The latency targets of one model in a service class."""

    model: Annotated[str, Length(1, 512)]
    """The model ID, as in `spec.modelID`."""

    slo_tpot: Maybe[Milliseconds] = field(default=UNSET, name="slo-tpot")
    """Maximum time between two tokens, in ms."""

    slo_ttft: Maybe[Milliseconds] = field(default=UNSET, name="slo-ttft")
    """Maximum time to the first token, in ms."""


@declaration()
class ServiceClassDocument:
    """A service class, as YAML in one key of the ConfigMap `service-classes-config`."""

    name: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """Name for messages."""

    priority: Annotated[int, Range(1, 100)]
    """Priority of the models of the class; 1 is served first, 100 last."""

    attainment: Annotated[float, Range(0.5, 0.999)] = 0.95
    """Share of requests that should be within both targets."""

    data: Maybe[Annotated[tuple[ModelTargets, ...], Items(maximum=10_000)]] = UNSET
    """The models of the class, with their targets. VariantAutoscalings of these models have the class,
    unless they name another one in `spec.sloClassRef`."""


@declaration()
class PriceDocument:
    """The price of an accelerator type, as JSON in the key of the type of `accelerator-unit-costs`."""

    device: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """Name of the device, for readers."""

    cost: Annotated[str, Pattern(_COST, says=_COST_SAYS)]
    """Cost per hour of one accelerator, in any currency; a number or a text."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The parsed text of one key, with everything wrong with it; paths begin at the document."""

    document: JsonValue
    errors: tuple[FieldError, ...] = ()
    is_readable: bool = True
    """Whether there is a document."""


def read_class(text: str) -> Setting:
    """Return the service class in a text."""
    try:
        document = _yaml(text)
    except ValueError as error:
        return Setting(None, (_unreadable(str(error)),), is_readable=False)
    if not isinstance(document, dict):
        return Setting(document, (_unreadable("must be a mapping with name, priority, attainment and data"),))
    twice = [
        errors.duplicate(duplicate.path, duplicate.path.parts[-1]) for duplicate in duplicate_fields(text)
    ]
    return Setting(document, (*twice, *document_errors(ServiceClassDocument, document)))


def read_price(text: str) -> Setting:
    """Return the price in a text. Numbers are texts in its document, which keeps their digits."""
    try:
        document = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return Setting(None, (_unreadable(f"must be JSON such as {_EXAMPLE}"),), is_readable=False)
    if not isinstance(document, dict):
        return Setting(document, (_unreadable(f"must be JSON such as {_EXAMPLE}"),))
    return Setting(document, tuple(document_errors(PriceDocument, document)))


def settings_errors(name: str, data: JsonValue, names: NamesConfig) -> list[FieldError]:
    """Return everything wrong with the `data` of a ConfigMap of settings; paths begin at the ConfigMap."""
    here = FieldPath().child("data")
    if not isinstance(data, Mapping):
        return [] if data is None else [errors.wrong_type(here, data, "must be a map of texts")]
    read = read_price if name == names.unit_costs else read_class
    problems: list[FieldError] = []
    for key, text in data.items():
        at = here.key(str(key))
        if isinstance(text, str):
            problems += [within(at, error) for error in read(text).errors]
        else:
            problems.append(errors.wrong_type(at, text, "must be a string"))
    return problems


def within(path: FieldPath, error: FieldError) -> FieldError:
    """Return an error of a document at the path of its text."""
    return FieldError(FieldPath((*path.parts, *error.path.parts)), error.reason, error.body)


def _unreadable(text: str) -> FieldError:
    return FieldError(FieldPath(), "FieldValueInvalid", f"Invalid value: {text}")


def _yaml(text: str) -> JsonValue:
    if len(text) > _LIMIT_CHARACTERS:
        raise ValueError(f"must be at most {_LIMIT_CHARACTERS} characters long")
    try:
        document = yaml.safe_load(text)
        count = _values(document, {})
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"is not YAML: {where}{error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error
    if count > _MOST_VALUES:
        raise ValueError(f"must have at most {_MOST_VALUES} values, with aliases written out")
    return document


def _values(value: JsonValue, known: dict[int, int]) -> int:
    """Return the number of values with aliases written out; they share their value, so each counts once."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES  # of an alias of itself, which is endless
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(item, known) for item in items)
    return known[id(value)]
