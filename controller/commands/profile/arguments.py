"""Command line arguments of `stowplan profile`."""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import Final

from apiserver.program import command_parser
from controller.commands.check.matching import namespace_argument
from controller.commands.status.options import add_kubeconfig
from controller.engines.prometheus_history import url_problem
from controller.engines.requests import CredentialsConfig

_EPILOG: Final = """\
examples:
  stowplan profile va/llama-8b-h100 -n chat          # what the controller learned
  stowplan profile hpa/llama-8b-h100 -n chat         # of an annotated autoscaler
  stowplan profile --prometheus http://localhost:9090 -n chat --pods 'llama-8b-h100-.*'
  stowplan profile --url http://localhost:8000/metrics --for 5m
  stowplan profile -f 1.txt -f 2.txt -f 3.txt --interval 15   # pages of one engine

The output is YAML for the spec of a VariantAutoscaling. What cannot be told is
in comments, such as step times without load.

exit code: 0 the step times are known, 1 they are not, 2 wrong usage, or nothing
could be read
"""
_SPAN: Final = re.compile(r"(?P<number>[0-9]{1,7}(\.[0-9]{1,3})?)(?P<unit>s|m|h|d|w)\Z")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST_SPAN_SECONDS: Final = 31 * 86_400
_LONGEST_PATTERN: Final = 1024
_MOST_BATCH: Final = 100_000


def span(text: str, *, least_seconds: float = 60.0) -> float:
    """Return a time in seconds from text such as `90m` or `24h`. Raises argparse.ArgumentTypeError."""
    match = _SPAN.match(text)
    seconds = float(match["number"]) * _UNIT_SECONDS[match["unit"]] if match else 0.0
    if not least_seconds <= seconds <= _MOST_SPAN_SECONDS:
        allowed = f"must be a time from {least_seconds:g}s to 31d, such as 90m, 24h or 7d"
        raise argparse.ArgumentTypeError(f"{text!r}: {allowed}")
    return seconds


def prometheus_url(text: str) -> str:
    """Return the URL of a Prometheus. Raises argparse.ArgumentTypeError."""
    if problem := url_problem(text):
        raise argparse.ArgumentTypeError(f"{text!r}: {problem}")
    return text


def add_prometheus(made: argparse.ArgumentParser, *, last: str) -> None:
    """Add the options of commands that read the past of engines in Prometheus."""
    add = made.add_argument_group("engines in Prometheus").add_argument
    add(
        "--prometheus",
        type=prometheus_url,
        metavar="URL",
        help="Prometheus that scrapes the engines, with the labels namespace and pod",
    )
    add(
        "--last", type=span, metavar="TIME", help=f"how far to look back, such as 90m or 7d (default: {last})"
    )
    add(
        "--prometheus-token-file",
        metavar="FILE",
        default="",
        help="file with a bearer token, which is only sent with https",
    )
    add(
        "--prometheus-ca-file",
        metavar="FILE",
        default="",
        help="CA certificates to trust instead of the system's",
    )


def credentials(options: argparse.Namespace) -> CredentialsConfig:
    """Return the credentials for Prometheus."""
    return CredentialsConfig(ca_file=options.prometheus_ca_file, token_file=options.prometheus_token_file)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "profile",
        "Print the profile of running engines, as YAML for spec.variantProfile.",
        usage="%(prog)s va/NAME | --prometheus URL | --url URL | -f FILE [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add(
        "what",
        nargs="*",
        metavar="va/NAME",
        help="the VariantAutoscaling, or hpa/NAME or so/NAME of an annotated autoscaler; va NAME and NAME are"
        " accepted, too",
    )
    add(
        "-n",
        "--namespace",
        type=namespace_argument,
        metavar="NS",
        help="namespace of the variant, or of pods",
    )
    add_kubeconfig(made)
    add("-o", "--output", choices=("yaml", "json"), default="yaml", help="output format (default: yaml)")
    add(
        "--max-batch-size",
        type=_batch,
        metavar="N",
        help="the engine's --max-num-seqs, for maxBatchSize (default: the declared one, or 256)",
    )
    add_prometheus(made, last="6h")
    _add_engine(made)
    return made


def _add_engine(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("--pods", type=_pattern, metavar="REGEX", help="pods with equal engines in Prometheus, as RE2")
    add = made.add_argument_group("an engine's own metrics").add_argument
    add(
        "--url",
        type=_page_url,
        metavar="URL",
        help="page of one engine, such as http://localhost:8000/metrics",
    )
    add(
        "--for",
        dest="watch_seconds",
        type=partial(span, least_seconds=1.0),
        default=120.0,
        metavar="TIME",
        help="how long to read the page (default: 2m)",
    )
    add(
        "-f",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="saved page of one engine, or - for standard input; repeat it for later pages, in order",
    )
    add(
        "--interval",
        dest="interval_seconds",
        type=_interval,
        default=15.0,
        metavar="SECONDS",
        help="time between two pages (default: 15)",
    )


def _batch(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:7]) <= _MOST_BATCH):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to {_MOST_BATCH}")
    return int(text)


def _pattern(text: str) -> str:
    if not 0 < len(text) <= _LONGEST_PATTERN:
        raise argparse.ArgumentTypeError(f"must be an expression of 1 to {_LONGEST_PATTERN} characters")
    return text


def _page_url(text: str) -> str:
    if url_problem(text):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a URL such as http://localhost:8000/metrics")
    return text


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 600:  # noqa: PLR2004 (readings farther apart are not compared)
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number of seconds from 1 to 600")
    return seconds
