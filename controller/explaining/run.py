"""`stowplan explain`: what the controller decided for one variant, and why, from a live cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from apiserver.checking.objects import as_yaml
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotConfigured, Unauthorized
from controller.explaining.account import Account, account_of
from controller.explaining.evidence import NoSuchVariantError, collect
from controller.explaining.namespaces import current_namespace
from controller.explaining.text import account_parts
from controller.offline.terminal import show

_EXPLAINED: Final = 0
_UNEXPLAINED: Final = 1
_USAGE: Final = 2
_INTERRUPTED: Final = 130
_KINDS: Final = frozenset({"va", "variantautoscaling", "variantautoscalings", "variantautoscalings.llmd.ai"})

_EPILOG: Final = """\
examples:
  stowplan explain va/llama-8b-l40s -n chat
  stowplan explain llama-8b-l40s -o json | jq .decision

exit code: 0 explained, 1 there is no such variant or no decision yet, 2 wrong
usage, no cluster to speak to, or no right to read the variant
"""


def main(arguments: Sequence[str]) -> int:
    """Explain one variant; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    name = _name(options.what)
    if not name:
        parser.error("say which variant, as in: stowplan explain va/NAME -n NAMESPACE")
    try:
        return asyncio.run(_run(options, name))
    except NoSuchVariantError as error:
        return _told(str(error), _UNEXPLAINED)
    except ClusterError as error:
        return _told(_why(error), _USAGE)
    except KeyboardInterrupt:
        return _INTERRUPTED


async def _run(options: argparse.Namespace, name: str) -> int:
    namespace = options.namespace or current_namespace(options.kubeconfig, options.context, os.environ)
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        evidence = await collect(cluster, namespace=namespace, name=name)
    account = account_of(evidence, now=datetime.now(UTC))
    _show(options.output, account)
    sys.stdout.flush()
    return _EXPLAINED if account.is_decided else _UNEXPLAINED


def _show(output: str, account: Account) -> None:
    match output:
        case "json":
            sys.stdout.write(json.dumps(account.as_json(), indent=2, ensure_ascii=False) + "\n")
        case "yaml":
            sys.stdout.write(as_yaml(account.as_json()))
        case _:
            show(account_parts(account))


def _why(error: ClusterError) -> str:
    match error:
        case NotConfigured():
            return error.message
        case Unauthorized():
            return f"the cluster does not accept your credentials: {error.message}"
        case Forbidden():
            return f"you may not read this: {error.message}"
        case _:
            return f"the cluster does not answer: {error.message}"


def _told(message: str, code: int) -> int:
    sys.stderr.write(f"stowplan: {message}\n")
    return code


def _name(words: Sequence[str]) -> str:
    """Return the name that `va/NAME`, `va NAME` or `NAME` says; nothing for what says none."""
    parts = "/".join(words).split("/")
    if parts[0].lower() in _KINDS:
        parts = parts[1:]
    return parts[0] if len(parts) == 1 else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stowplan explain",
        description="Say what was decided for a variant in a live cluster, and why.",
        usage="stowplan explain va/NAME [-n NAMESPACE] [options]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", nargs="+", metavar="va/NAME", help="the variant; va NAME and NAME do as well")
    add("-n", "--namespace", metavar="NS", help="its namespace (default: the context's)")
    add("--kubeconfig", type=Path, metavar="FILE", help="which kubeconfig to use")
    add("--context", metavar="NAME", help="which of its contexts to use")
    add("-o", "--output", choices=("table", "json", "yaml"), default="table", help="table is the default")
    return parser
