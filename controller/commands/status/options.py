"""What the verbs about a live cluster share: options of the command line, and their end without an answer."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final

from apiserver.cluster.errors import ClusterError, explain
from apiserver.cluster.namespaces import current_namespace
from apiserver.program import exit_code

_UNREAD: Final = 2


def exit_code_of(run: Callable[[], Coroutine[object, object, int]], *, unread: int) -> int:
    """Return the exit code of a verb that reads a cluster: 2, with a message, if that does not answer.

    `unread` is that for a reader who closes the output early.
    """
    try:
        return exit_code(lambda: asyncio.run(run()), unread=unread)
    except ClusterError as error:
        sys.stderr.write(f"stowplan: {explain(error, action='read this')}\n")
        return _UNREAD


def add_kubeconfig(made: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster."""
    made.add_argument("--kubeconfig", type=Path, metavar="FILE", help="path to the kubeconfig file")
    made.add_argument("--context", metavar="NAME", help="name of the kubeconfig context to use")


def add_connection(made: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster, and the namespace of Stowplan in it."""
    made.add_argument(
        "--system-namespace",
        metavar="NS",
        help="namespace where Stowplan runs (default: that of its webhook configuration)",
    )
    add_kubeconfig(made)


def add_scope(made: argparse.ArgumentParser) -> None:
    """Add the options that choose the namespaces of models."""
    add = made.add_mutually_exclusive_group().add_argument
    add("-n", "--namespace", metavar="NS", help="namespace of the models (default: that of the context)")
    add("-A", "--all-namespaces", action="store_true", help="models of all namespaces")


def namespace_of(options: argparse.Namespace) -> str | None:
    """Return the namespace that the options of `add_scope` choose; None for all."""
    if options.all_namespaces:
        return None
    return options.namespace or current_namespace(options.kubeconfig, options.context, os.environ)


def add_output(made: argparse.ArgumentParser) -> None:
    """Add the option that chooses the format of the output."""
    made.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="output format (default: table)",
    )


def number_between(least: float, most: float) -> Callable[[str], float]:
    """Return a function that reads a number from text. It raises argparse.ArgumentTypeError."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: must be a number from {least:g} to {most:g}")
        return number

    return read
