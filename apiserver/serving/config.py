"""Configuration of a server subcommand, one YAML document and flags that override it, and its start.

The document is declared like a kind, so its schema, defaults and reference page derive from the same
declaration. Every scalar field has a flag, except a few that can only be set in the file:
`planning.scaleToZero` is `--planning-scale-to-zero`.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import jsonschema_rs
import msgspec

from apiserver.log import configure_logging
from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.markers import Length, Range
from apiserver.schema.model import Property, SchemaNode, node_of
from apiserver.schema.shape import without_nulls
from apiserver.schema.structural import describe_property, judged_schema

T = TypeVar("T")

Port = Annotated[int, Range(0, 65535)]
"""A TCP port; 0 selects any free one."""


class ConfigurationError(Exception):
    """The configuration file or a flag is invalid; `problems` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@declaration()
class ServingConfig:
    """Settings of the listeners and logs, common to all Stowplan processes."""

    bind_address: Annotated[str, Length(maximum=253)] = ""
    """The address that all listeners bind to; empty for all addresses, of IPv4 and IPv6."""

    port: Port = 9443
    """The port of the HTTPS listener, for processes that have one."""

    metrics_port: Port = 8080
    """The port of Prometheus metrics, over plain HTTP."""

    health_port: Port = 8081
    """The port of `/livez` and `/readyz`, over plain HTTP."""

    certificate_directory: Annotated[str, Length(1, 4096)] = "/etc/stowplan/tls"
    """The directory with `tls.crt` and `tls.key`; changed files are reloaded without a restart."""

    drain_seconds: Annotated[int, Range(0, 600)] = 5
    """The drain period after SIGTERM, in seconds; requests are still answered, so that clients can move
    away."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """The format of log lines; `auto` is console on a terminal and JSON elsewhere."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""


@declaration()
class ClusterConfig:
    """How to connect to the API server."""

    kubeconfig: Annotated[str, Length(maximum=4096)] = ""
    """The kubeconfig file. If empty: `KUBECONFIG`, else the pod's service account, else `~/.kube/config`."""

    context: Annotated[str, Length(maximum=253)] = ""
    """The context in that file; if empty, the current one."""


_HELP_COLUMNS: Final = 110
_FLAG_COLUMNS: Final = 46

_CONFIG_FLAG: Final = "config"
_HELP_FLAGS: Final = frozenset({"-h", "--help"})
_EVERYWHERE: Final = frozenset({"serving", "cluster"})
"""Sections that all subcommands share. Their flags omit the name of the section."""

_FILE_ONLY: Final = frozenset({"credentials", "objectives", "objectivesHighestPriority"})
"""Fields and sections without flags. Which objectives count depends on namespaces, and is set in the file."""


def parse(declared: type[T], *, program: str, description: str, arguments: Sequence[str]) -> T:
    """Return the configuration for the arguments of a subcommand: defaults, then file, then flags.

    Raises ConfigurationError with all problems at once, and SystemExit for `--help` or unknown flags.
    """
    node = node_of(declared)
    parser = _parser(node, program, description, is_explained=not _HELP_FLAGS.isdisjoint(arguments))
    flags = vars(parser.parse_args(arguments))
    document = _read_document(flags.pop(_CONFIG_FLAG))
    for path, prop in _leaves(node, ()):
        text = flags[flag_name(path)]
        if text is not None:
            _set_field(document, path, _scalar(prop.node, text))
    return load(declared, document)


def load(declared: type[T], document: Json) -> T:
    """Return the configuration for a document; a null member counts as absent. Raises ConfigurationError."""
    if not _fits(_close(judged_schema(node_of(declared))), document):
        # Imported lazily: only a process with an odd or invalid configuration needs it.
        from apiserver.schema.document import as_json, document_errors  # noqa: PLC0415 (see above)

        if problems := document_errors(declared, document):
            raise ConfigurationError([str(problem) for problem in problems])
        document = as_json(without_nulls(node_of(declared), document))
    return msgspec.convert(document, declared)


def _fits(schema: Json, document: Json) -> bool:
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(document)
    except ValueError:
        return False  # YAML has values that JSON lacks, such as dates


def _read_document(path: str | None) -> Json:
    if path is None:
        return {}
    import yaml  # noqa: PLC0415 (needed only with a configuration file)

    from apiserver.schema.document import duplicate_fields  # noqa: PLC0415 (as above)

    try:
        text = Path(path).read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError([f"--config {path}: {error}"]) from error
    if document is not None and not isinstance(document, dict):
        raise ConfigurationError([f"--config {path}: must contain one YAML mapping"])
    if repeated := duplicate_fields(text):
        raise ConfigurationError([f"--config {path}:{duplicate.line}: {duplicate}" for duplicate in repeated])
    return document or {}


def _parser(
    node: SchemaNode, program: str, description: str, *, is_explained: bool
) -> argparse.ArgumentParser:
    """Return the parser. Help texts, which require parsing our own source, are added on demand."""
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} [--config FILE] [--FLAG X ...]",
        description=description,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.HelpFormatter(
            prog, max_help_position=_FLAG_COLUMNS - 2, width=_HELP_COLUMNS
        ),
    )
    parser.add_argument(
        "--config", metavar="FILE", help="YAML file with the settings below as camelCase fields"
    )
    for path, prop in _leaves(node, ()):
        explained = _explanation(prop) if is_explained else None
        flag, choices = flag_name(path), "|".join(map(str, prop.node.keywords.get("enum", ())))
        metavar = choices if choices and len(f"  {flag} {choices}  ") <= _FLAG_COLUMNS else "X"
        parser.add_argument(flag, dest=flag, metavar=metavar, help=explained)
    return parser


def _explanation(prop: Property) -> str:
    shown = "" if prop.default in ("", None) else f" [{prop.default}]"
    sentence = re.split(r"[.;:] ", describe_property(prop))[0].rstrip(".")
    text = textwrap.shorten(sentence, _HELP_COLUMNS - _FLAG_COLUMNS - len(shown), placeholder="...")
    return f"{text}{shown}".replace("%", "%%")


def flag_name(path: Sequence[str]) -> str:
    """Return a field's flag: `engines.limitBytes` is `--engines-limit-bytes`, `serving.port` is `--port`."""
    words = path[1:] if path[0] in _EVERYWHERE else path
    return "--" + "-".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", word).lower() for word in words)


def _leaves(node: SchemaNode, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Property]]:
    leaves: list[tuple[tuple[str, ...], Property]] = []
    for prop in node.properties:
        here = (*path, prop.name)
        if prop.name in _FILE_ONLY:
            continue
        if prop.node.properties:
            leaves += _leaves(prop.node, here)
        elif prop.node.type in {"string", "integer", "number", "boolean"}:
            leaves.append((here, prop))
    return leaves


def _scalar(node: SchemaNode, text: str) -> JsonValue:
    if node.type == "string":
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text  # the schema rejects it with the path of the field


def _set_field(document: Json, path: tuple[str, ...], value: JsonValue) -> None:
    for part in path[:-1]:
        if document.get(part) is None:
            document[part] = {}
        if not isinstance(document[part], dict):
            return  # the schema rejects it with the path of the field
        document = document[part]
    document[path[-1]] = value


def _close(schema: Json) -> Json:
    if "properties" not in schema:
        return schema
    inner = {name: _close(item) for name, item in schema["properties"].items()}
    return schema | {"properties": inner, "additionalProperties": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits on what clients may hold, and on the duration of a shutdown."""

    keep_alive_seconds: float = 120.0
    """How long an idle connection stays open. API servers close theirs after 90 s, so they close first and
    never send a request on a connection that is being closed."""
    unfinished_request_seconds: float = 10.0
    """How long a request may take to arrive completely."""
    connections: int = 1024
    """The maximum number of connections of one listener."""
    finish_seconds: float = 20.0
    """How long requests in flight, and then background work, may take to end."""


_WRONG_CONFIGURATION: Final = 2


def run_verb(
    declared: type[T],
    arguments: Sequence[str],
    *,
    verb: str,
    description: str,
    serving: Callable[[T], ServingConfig],
    start: Callable[[T], int],
) -> int:
    """Parse the configuration, set up logging, and run; return the exit code.

    Every problem of an invalid configuration is printed to standard error, with exit code 2.
    """
    try:
        config = parse(declared, program=f"stowplan {verb}", description=description, arguments=arguments)
        logs = serving(config)
        configure_logging(level=logs.log_level, format=None if logs.log_format == "auto" else logs.log_format)
        return start(config)
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"stowplan {verb}: {problem}", file=sys.stderr)  # noqa: T201 (before logging is set up)
        return _WRONG_CONFIGURATION
