"""Entry point of `stowplan explain`: one decision of a live cluster, or everything that is not well."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import RenderableType

from apiserver.cluster.client import Cluster
from apiserver.cluster.namespaces import current_namespace, installed_namespace
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS
from apiserver.program import command_parser
from apiserver.schema.json import Json
from controller.commands.explain.binding import binding_parts, explain_binding
from controller.commands.explain.evidence import OWNERS, NoSuchObjectError, collect
from controller.commands.explain.variant import explain_variant, variant_parts
from controller.commands.plan.terminal import Tone, present, wrapping_text
from controller.commands.status.fleet import FleetState
from controller.commands.status.options import add_connection, add_output, exit_code_of
from controller.commands.status.run import read_fleet
from controller.commands.status.text import headline, problem_parts, unread_parts
from controller.observe.claim import OwnerKind

_EXPLAINED: Final = 0
_UNEXPLAINED: Final = 1
_RESOURCES: Final = {**OWNERS, OwnerKind.BINDING: AUTOSCALING_POLICY_BINDINGS}
_KINDS: Final = {
    name: kind
    for kind, resource in _RESOURCES.items()
    for name in (
        kind.short_name,
        kind.lower(),
        resource.plural,
        f"{resource.plural}.{resource.group}",
    )
}
"""The kinds by their names in commands, as kubectl accepts them."""

_EPILOG: Final = """\
examples:
  stowplan explain va/llama-8b-l40s -n chat
  stowplan explain llama-8b-l40s -o json | jq .decision
  stowplan explain aspb/llama-70b -n chat
  stowplan explain hpa/llama-8b-l40s -n chat      # an annotated autoscaler, or so/NAME
  stowplan explain -n chat                        # what is not well in a namespace
  stowplan explain -A                             # in all namespaces

exit code: 0 explained, or all is well; 1 there is no such object, no decision
yet, or something is not well; 2 wrong usage, no connection to a cluster, or no
permission to read the object
"""


def main(arguments: Sequence[str]) -> int:
    """Explain one variant or binding, or list what is not well; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    kind, name = subject(options.what)
    if options.what and options.all_namespaces:
        made.error("-A lists what is not well in all namespaces: give no object with it")
    if options.what and not name:
        made.error("not one object: stowplan explain va/NAME -n NAMESPACE, or aspb, hpa, so/NAME")
    try:
        return exit_code_of(lambda: _run(options, kind, name), unread=_UNEXPLAINED)
    except NoSuchObjectError as error:
        sys.stderr.write(f"stowplan: {error}\n")
        return _UNEXPLAINED


async def _run(options: argparse.Namespace, kind: OwnerKind, name: str) -> int:
    namespace = options.namespace or current_namespace(options.kubeconfig, options.context, os.environ)
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        system = options.system_namespace or await installed_namespace(cluster)
        if not name:
            fleet = await read_fleet(
                cluster, namespace=None if options.all_namespaces else namespace, system=system
            )
            present(options.output, lambda: _as_json(fleet), _parts(fleet))
            return _UNEXPLAINED if fleet.problems else _EXPLAINED
        place = {"namespace": namespace, "name": name, "system": system}
        if kind is OwnerKind.BINDING:
            explanation = await explain_binding(cluster, **place, now=datetime.now(UTC))
            parts = binding_parts(explanation)
        else:
            evidence = await collect(cluster, kind, **place)
            explanation = explain_variant(evidence, now=datetime.now(UTC))
            parts = variant_parts(explanation)
    present(options.output, lambda: explanation, parts)
    return _EXPLAINED if explanation["is_decided"] else _UNEXPLAINED


def _as_json(fleet: FleetState) -> Json:
    whole = fleet.as_json()
    return {name: whole[name] for name in ("problems", "unread")}


def _parts(fleet: FleetState) -> Iterator[RenderableType]:
    yield from problem_parts(fleet.problems)
    if not fleet.problems:
        yield wrapping_text(headline(fleet), Tone.GOOD)
    yield from unread_parts(fleet)


def subject(words: Sequence[str]) -> tuple[OwnerKind, str]:
    """Return the kind, and the name in `va/NAME`, `aspb NAME` or `NAME`, if any."""
    parts = "/".join(words).split("/")
    kind = _KINDS.get(parts[0].lower())
    if kind:
        parts = parts[1:]
    return kind or OwnerKind.VARIANT, parts[0] if len(parts) == 1 else ""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "explain",
        "Explain the current decision for a VariantAutoscaling, an annotated autoscaler or an"
        " AutoscalingPolicyBinding in a live cluster. Without a name, list what is not well.",
        usage="%(prog)s [va/NAME|aspb/NAME|hpa/NAME|so/NAME] [-n NAMESPACE | -A] [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add(
        "what",
        nargs="*",
        metavar="va/NAME",
        help="the VariantAutoscaling, or aspb/NAME, hpa/NAME, so/NAME; va NAME and NAME are accepted, too",
    )
    add("-n", "--namespace", metavar="NS", help="namespace of the object (default: that of the context)")
    add("-A", "--all-namespaces", action="store_true", help="without a name: all namespaces")
    add_connection(made)
    add_output(made)
    return made
