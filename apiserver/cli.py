"""`stowplan` and `kubectl-stowplan`: a table of subcommands, each imported only when it is called."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final

from apiserver.program import program
from apiserver.serving.aside import load_http_library_aside

_USAGE_ERROR: Final = 2

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "webhooks": ("webhooks.run", "serve admission and conversion to the API server"),
    "apiserver": ("apiserver.metrics.run", "serve external.metrics.k8s.io to the HorizontalPodAutoscaler"),
    "controller": ("controller.run", "observe, plan, and write decisions to status"),
    "models": ("controller.models_run", "make what Models become, and keep it so"),
    "check": ("apiserver.checking.run", "default and validate manifests, without a cluster"),
    "convert": ("apiserver.converting.run", "rewrite manifests in another version or shape"),
    "expand": ("controller.expanding.run", "print what a Model becomes, without a cluster"),
    "plan": ("controller.offline.run", "say what would be decided, and why, without a cluster"),
    "simulate": ("controller.simulating.run", "play requests against policies, and say cost and latency"),
    "explain": ("controller.explaining.run", "say why a variant has the replicas that it has"),
    "upgrade": ("apiserver.upgrading.upgrade", "take a live cluster to this release's definitions"),
    "downgrade": ("apiserver.upgrading.downgrade", "give a live cluster back to an earlier release"),
    "uninstall": ("controller.uninstalling.uninstall", "take Stowplan out of a cluster"),
}
"""The subcommands: the module whose `main(arguments)` returns an exit code, and the description."""

_QUICK: Final = frozenset({"webhooks"})
"""Subcommands that must start fast: they first import what does not need the HTTP library."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; without one, print the help."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help", "help"}:
        print(_help())  # noqa: T201 (speaking to a person is what a command line is for)
        return 0 if words else _USAGE_ERROR
    if words[0] in {"--version", "version"}:
        print(_version())  # noqa: T201 (as above)
        return 0
    if words[0] not in VERBS:
        print(f"{program()}: no verb {words[0]!r}; there are: {', '.join(VERBS)}", file=sys.stderr)  # noqa: T201 (as above)
        return _USAGE_ERROR
    return int(_loaded(words[0]).main(words[1:]))


def _loaded(verb: str) -> ModuleType:
    """Import a subcommand without garbage collection, since modules are never freed."""
    gc.disable()
    if verb in _QUICK:
        load_http_library_aside()
    try:
        return importlib.import_module(VERBS[verb][0])
    finally:
        gc.freeze()
        gc.enable()


def _version() -> str:
    from importlib import metadata  # noqa: PLC0415 (no verb waits for what only this one needs)

    return metadata.version("stowplan")


def _help() -> str:
    lines = [f"  {verb:<12} {purpose}" for verb, (_, purpose) in VERBS.items()]
    return "\n".join(
        [
            f"usage: {program()} VERB [--help] ...",
            "",
            "Autoscaling control plane for LLM inference on Kubernetes.",
            "",
            *lines,
            "",
            f"{program()} VERB --help says what a verb can be told; {program()} version prints the version.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
