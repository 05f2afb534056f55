"""`stowplan` and `kubectl-stowplan`: a table of subcommands, each imported only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Final

from apiserver.completion import ASKED, complete
from apiserver.program import exit_code, program, version

_USAGE_ERROR: Final = 2
_UNREAD: Final = 1

_PURPOSES: Final = {
    "webhooks": "run the admission and conversion webhooks",
    "apiserver": "run the external metrics API server (external.metrics.k8s.io)",
    "controller": "run the controller that observes, plans and publishes decisions",
    "models": "run the controller that expands Models into workloads and routes",
    "check": "validate manifests without a cluster",
    "convert": "convert VariantAutoscaling manifests to another API version",
    "migrate": "rewrite manifests for later releases of llm-d and Kthena, or back",
    "expand": "print the objects that a Model expands to, without a cluster",
    "plan": "compute a plan from manifests or exported objects, without a cluster",
    "simulate": "simulate autoscaling policies, and compare cost and latency",
    "doctor": "check a cluster before and after an installation",
    "status": "show models, accelerators, cost and problems of a live cluster",
    "dashboard": "serve a page about the fleet of a live cluster on this machine",
    "profile": "print the profile of running engines, for the spec of a VariantAutoscaling",
    "explain": "explain the decision for a variant or a binding in a live cluster",
    "upgrade": "upgrade a live cluster to the definitions of this release",
    "downgrade": "restore a live cluster to the definitions of an earlier release",
    "completion": "print the code for completion in bash, zsh or fish",
    "uninstall": "remove Stowplan from a cluster",
}
_MODULES: Final = {
    "webhooks": "webhooks.run",
    "apiserver": "apiserver.metrics.run",
    "controller": "controller.run",
    "models": "controller.models.run",
    "upgrade": "controller.commands.upgrade.upgrade",
    "downgrade": "controller.commands.upgrade.downgrade",
    "completion": "apiserver.completion",
    "uninstall": "controller.commands.uninstall.uninstall",
}

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    verb: (_MODULES.get(verb, f"controller.commands.{verb}.run"), purpose)
    for verb, purpose in _PURPOSES.items()
}
"""The subcommands: the module whose `main(arguments)` returns an exit code, and the description."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; without one, print the help."""
    if ASKED in os.environ:
        complete({verb: purpose for verb, (_, purpose) in VERBS.items()}, load_verb)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help", "help"}:
        return exit_code(partial(_say, _help(), 0 if words else _USAGE_ERROR), unread=_UNREAD)
    if words[0] in {"--version", "version"}:
        return exit_code(partial(_say, version(), 0), unread=_UNREAD)
    if words[0] not in VERBS:
        print(f"{program()}: unknown verb {words[0]!r}; available verbs: {', '.join(VERBS)}", file=sys.stderr)  # noqa: T201 (prints for users)
        return _USAGE_ERROR
    return int(load_verb(words[0]).main(words[1:]))


def _say(text: str, code: int) -> int:
    print(text, flush=True)  # noqa: T201 (as above)
    return code


def load_verb(verb: str) -> ModuleType:
    """Import a subcommand."""
    return importlib.import_module(VERBS[verb][0])


def _help() -> str:
    lines = [f"  {verb:<12} {purpose}" for verb, (_, purpose) in VERBS.items()]
    return "\n".join(
        [
            f"usage: {program()} VERB [options]",
            "",
            "Autoscaling control plane for LLM inference on Kubernetes.",
            "",
            *lines,
            "",
            f'Use "{program()} VERB --help" for the options of a verb.',
            f'Use "{program()} version" for the version.',
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
