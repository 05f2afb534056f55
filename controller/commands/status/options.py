"""Options of the command line that the verbs about a live cluster share."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

from apiserver.cluster.namespaces import current_namespace


def add_connection(made: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster, and the namespace of Stowplan in it."""
    add = made.add_argument
    add(
        "--system-namespace",
        metavar="NS",
        help="namespace where Stowplan runs (default: that of its webhook configuration)",
    )
    add("--kubeconfig", type=Path, metavar="FILE", help="path to the kubeconfig file")
    add("--context", metavar="NAME", help="name of the kubeconfig context to use")


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
