"""Command line arguments of `stowplan simulate`."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Final

from apiserver.program import program
from controller.simulating.profiles import StatedProfile, profile_of

_EPILOG: Final = """\
SCENARIO is a YAML file that says which models are asked for what, by which
variants on which nodes; without it and without -f an example is played. With -f
the variants, targets, prices and nodes are those of a live cluster's objects.
FILE of --trace is a shipped trace (azure-llm-2023-conv, azure-llm-2023-code),
CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, or JSON lines
with timestamp (ms), input_length and output_length.

policies:
  stowplan               the controller itself, and HPAs that follow it
  concurrency:N[@VARIANT] an HPA on running and waiting requests, N per replica
  queue:N[@VARIANT]      an HPA on waiting requests, N per replica
  constant:N[@VARIANT]   N replicas, always
  wva-v1, wva-v2         the saturation rules of the workload variant autoscaler
  clairvoyant            who knows what will come: a lower bound, some six runs long
  FILE.yaml              an AutoscalingPolicy, with its binding if there is one

Without SCENARIO and -f, FILE of --trace may hold metrics: CSV with the columns
time, metric and value. Then policies in files are replayed on them.

examples:
  stowplan simulate
  stowplan simulate scenario.yaml --policy stowplan --policy concurrency:40@h100
  stowplan simulate scenario.yaml --config controller.yaml --html outcome.html
  stowplan simulate --policy policy.yaml --trace metrics.csv --html replay.html
  kubectl get va,deploy,hpa,nodes,pods,cm -A -o yaml > live.yaml
  stowplan simulate -f live.yaml --trace tuesday.csv --start-up h100=140 \\
      --profile h100=8,0.05,0.03 --kv-tokens h100=384000

exit code: 0 everything was played, 2 wrong usage or unreadable input
"""
_NAMED: Final = re.compile(r"(?P<name>[^=]+)=(?P<value>.+)\Z")
_MOST_SECONDS: Final = 7 * 86400

SHORTEST_SECONDS: Final = 15.0
"""Minimum duration: one sync period of a HorizontalPodAutoscaler."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog=program("simulate"),
        description="Play requests against policies in virtual time: cost, latency and every decision.",
        usage="%(prog)s [SCENARIO | -f FILE --trace FILE[=MODEL]] [options]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("scenario", nargs="?", metavar="SCENARIO", help="YAML file")
    add(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="who decides, or a FILE that says; may be repeated",
    )
    add("--seed", type=_whole, metavar="N", help="of all chance; the same seed, the same outcome")
    add("--duration", type=_duration, metavar="SECONDS", help="how long is played and scored")
    add("--start", choices=("warm", "cold"), help="whether ten minutes are played ahead, unscored")
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="the controller's configuration, or its ConfigMap, for the policy stowplan",
    )
    add("-o", "--output", choices=("table", "json"), default="table", help="table is the default")
    add("--html", type=Path, metavar="FILE", help="write one page for a browser, too, with charts")
    _add_cluster(made)
    return made


def _add_cluster(made: argparse.ArgumentParser) -> None:
    add = made.add_argument_group("a live cluster's objects").add_argument
    add("-f", dest="files", action="append", default=[], metavar="FILE", help="file, directory or -")
    add("-n", "--namespace", metavar="NS", help="of objects that name none (default)")
    add(
        "--settings-namespace",
        metavar="NS",
        help="where the ConfigMaps with prices and service classes are (stowplan-system)",
    )
    add(
        "--trace",
        action="append",
        default=[],
        type=_trace,
        metavar="FILE[=MODEL]",
        help="what a model is asked for",
    )
    add("--copies", type=_copies, metavar="N", help="send each request of the traces N times (1)")
    add(
        "--start-up",
        action="append",
        default=[],
        type=_start_up,
        metavar="VARIANT=SECONDS",
        help="from a place on a node to the first request",
    )
    add(
        "--profile",
        action="append",
        default=[],
        type=_profile,
        metavar="VARIANT=ALPHA,BETA,DELTA[,GAMMA]",
        help="ms per iteration, per sequence in it, per prompt token, per iteration with prompts",
    )
    add(
        "--kv-tokens",
        action="append",
        default=[],
        type=_kv_tokens,
        metavar="VARIANT=TOKENS",
        help="what the KV cache holds, as the engine logs it at its start",
    )


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004 (as many digits as a seed may have)
        raise argparse.ArgumentTypeError(f"{text!r}: say a whole number from 0 to 999999999")
    return int(text)


def _copies(text: str) -> int:
    if not 1 <= (copies := _whole(text)) <= 1000:  # noqa: PLR2004 (as in a scenario file)
        raise argparse.ArgumentTypeError(f"{text!r}: say a whole number from 1 to 1000")
    return copies


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r}: say seconds from 0 to {_MOST_SECONDS}")
    return seconds


def _duration(text: str) -> float:
    if (seconds := _seconds(text)) < SHORTEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r}: must be at least {SHORTEST_SECONDS:g} s")
    return seconds


def _trace(text: str) -> tuple[str, str]:
    """Return the file and the model; a file name that contains an equals sign is taken as it is."""
    file, _, model = text.partition("=")
    return (text, "") if Path(text).exists() else (file, model)


def _named(text: str, example: str) -> tuple[str, str]:
    found = _NAMED.match(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: say {example}")
    return found["name"], found["value"]


def _start_up(text: str) -> tuple[str, float]:
    name, value = _named(text, "VARIANT=SECONDS, such as h100=140")
    return name, _seconds(value)


def _kv_tokens(text: str) -> tuple[str, int]:
    name, value = _named(text, "VARIANT=TOKENS, such as h100=384000")
    tokens = _whole(value)
    if not tokens:
        raise argparse.ArgumentTypeError(f"{text!r}: must be more than 0 tokens")
    return name, tokens


def _profile(text: str) -> tuple[str, StatedProfile]:
    name, value = _named(text, "VARIANT=ALPHA,BETA,DELTA[,GAMMA], such as h100=8,0.05,0.03")
    numbers = value.split(",")
    try:
        if len(numbers) not in (3, 4):
            raise ValueError("must be three or four numbers: ALPHA,BETA,DELTA[,GAMMA]")  # noqa: TRY301 (one message for all)
        return name, profile_of(*numbers)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
