"""Command line arguments of `stowplan simulate`."""

from __future__ import annotations

import argparse
import math
import re
from functools import partial
from pathlib import Path
from typing import Final

from apiserver.program import command_parser
from controller.commands.plan.arguments import add_files, add_settings_namespace, output_file
from controller.commands.profile.arguments import add_prometheus
from controller.commands.simulate.engines import profile_of
from controller.sizing.records import StepParameters

_EPILOG: Final = """\
SCENARIO is a YAML file that defines models, their load, their variants and the
nodes. Without SCENARIO and -f, an example is simulated; --trace replaces its
requests. With -f, the variants, targets, prices and nodes come from exported
objects of a live cluster. The FILE of --trace is an included trace
(azure-llm-2023-conv, azure-llm-2023-code, servegen-m-mid-a, servegen-m-mid-b,
servegen-m-small), CSV with the columns TIMESTAMP (a date, or seconds since
1970), ContextTokens and GeneratedTokens, or JSON lines with timestamp (ms),
input_length and output_length.

policies:
  stowplan                 the controller, and HPAs that follow its decisions
  hpa                      the HPAs and ScaledObjects of the objects of -f
  concurrency:N[@VARIANT,...]
                           HPA on running and waiting requests, N per replica
  queue:N[@VARIANT,...]    HPA on waiting requests, N per replica
  constant:N[@VARIANT,...] always N replicas of one variant per model
  lower-bound[:N]          no policy that serves N % of the requests in time
                           costs less (default: 99)
  FILE.yaml                AutoscalingPolicy, with its binding if there is one

With --policy FILE.yaml and --trace, but without SCENARIO and -f, the targets of
the binding serve the requests, each with an engine of the example. The FILE of
--trace can then also contain metrics: CSV with the columns time, metric and
value. Policies are replayed on them, without engines.

examples:
  stowplan simulate
  stowplan simulate scenario.yaml --policy stowplan --policy concurrency:40@h100
  stowplan simulate scenario.yaml --config controller.yaml --html outcome.html
  stowplan simulate --policy policy.yaml --trace azure-llm-2023-code
  stowplan simulate --policy policy.yaml --trace metrics.csv --html replay.html
  kubectl get va,deploy,hpa,nodes,pods,cm -A -o yaml > live.yaml
  stowplan simulate -f live.yaml --prometheus http://localhost:9090 --last 24h \\
      --policy stowplan --policy hpa
  stowplan simulate -f live.yaml --trace tuesday.csv --start-up h100=140 \\
      --profile h100=8,0.05,0.03 --kv-tokens h100=384000

exit code: 0 done, 2 wrong usage or unreadable input
"""
_NAMED: Final = re.compile(r"(?P<name>[^=]+)=(?P<value>.+)\Z")
_MOST_SECONDS: Final = 7 * 86400

SHORTEST_SECONDS: Final = 15.0
"""Minimum duration: one sync period of a HorizontalPodAutoscaler."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "simulate",
        "Simulate autoscaling policies, and report cost, latency and every decision.",
        usage="%(prog)s [SCENARIO | [-f FILE] --trace FILE[=MODEL]] [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add("scenario", nargs="?", metavar="SCENARIO", help="YAML file with the scenario")
    add(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="policy to simulate, or a FILE with one; may be repeated",
    )
    add("--seed", type=_whole, metavar="N", help="random seed; runs with the same seed have the same outcome")
    scored = partial(_seconds, least=SHORTEST_SECONDS)
    add("--duration", type=scored, metavar="SECONDS", help="simulated time that is scored")
    add(
        "--start",
        choices=("warm", "cold"),
        help="warm: simulate ten minutes before the scored time; cold: start without them",
    )
    add(
        "--patience",
        type=_seconds,
        metavar="SECONDS",
        help="how long clients wait for a first token before they give up (default: 60; 0 for never)",
    )
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="controller configuration for the policy stowplan, or the ConfigMap that contains it",
    )
    add("-o", "--output", choices=("table", "json"), default="table", help="output format (default: table)")
    add("--html", type=output_file, metavar="FILE", help="also write an HTML page with charts")
    _add_recorded(made)
    _add_cluster(made)
    add_prometheus(made, last="24h")
    return made


def _add_recorded(made: argparse.ArgumentParser) -> None:
    add = made.add_argument_group("recorded requests or metrics").add_argument
    add(
        "--trace",
        action="append",
        default=[],
        type=_trace,
        metavar="FILE[=MODEL]",
        help="trace with the requests for a model, or with metrics; may be repeated with -f",
    )
    add("--copies", type=_copies, metavar="N", help="send each request of the traces N times (default: 1)")


def _add_cluster(made: argparse.ArgumentParser) -> None:
    add = made.add_argument_group("objects of a live cluster").add_argument
    add_files(add, is_required=False)
    add_settings_namespace(add)
    add(
        "--start-up",
        action="append",
        default=[],
        type=_start_up,
        metavar="VARIANT=SECONDS",
        help="time from the assignment to a node until the replica serves",
    )
    add(
        "--profile",
        action="append",
        default=[],
        type=_profile,
        metavar="VARIANT=ALPHA,BETA,DELTA[,GAMMA]",
        help="step times in ms: per iteration, per sequence, per prompt token, per iteration with prompts",
    )
    add(
        "--kv-tokens",
        action="append",
        default=[],
        type=_kv_tokens,
        metavar="VARIANT=TOKENS",
        help="size of the KV cache, which the engine logs at startup",
    )


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004 (the maximum number of digits of a seed)
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 0 to 999999999")
    return int(text)


def _copies(text: str) -> int:
    if not 1 <= (copies := _whole(text)) <= 1000:  # noqa: PLR2004 (the limit for scenario files)
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 1000")
    return copies


def _seconds(text: str, least: float = 0) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not least <= seconds <= _MOST_SECONDS:
        allowed = f"a number of seconds from {least:g} to {_MOST_SECONDS}"
        raise argparse.ArgumentTypeError(f"{text!r}: must be {allowed}")
    return seconds


def _trace(text: str) -> tuple[str, str]:
    """Return the file and the model; a file name that contains an equals sign is taken as it is."""
    file, _, model = text.partition("=")
    return (text, "") if Path(text).exists() else (file, model)


def _name_and_value(text: str, example: str) -> tuple[str, str]:
    match = _NAMED.match(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: must be {example}")
    return match["name"], match["value"]


def _start_up(text: str) -> tuple[str, float]:
    name, value = _name_and_value(text, "VARIANT=SECONDS, such as h100=140")
    return name, _seconds(value)


def _kv_tokens(text: str) -> tuple[str, int]:
    name, value = _name_and_value(text, "VARIANT=TOKENS, such as h100=384000")
    tokens = _whole(value)
    if not tokens:
        raise argparse.ArgumentTypeError(f"{text!r}: must be more than 0 tokens")
    return name, tokens


def _profile(text: str) -> tuple[str, StepParameters]:
    name, value = _name_and_value(text, "VARIANT=ALPHA,BETA,DELTA[,GAMMA], such as h100=8,0.05,0.03")
    numbers = value.split(",")
    try:
        if len(numbers) not in (3, 4):
            raise ValueError("must be three or four numbers: ALPHA,BETA,DELTA[,GAMMA]")  # noqa: TRY301 (one handler for all errors)
        return name, profile_of(*numbers)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
