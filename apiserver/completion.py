"""Completion of the command line in bash, zsh and fish, by argcomplete."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final

from apiserver.program import command_parser, exit_code, program

ASKED: Final = "_ARGCOMPLETE"
"""The environment variable that a shell sets to ask for completions."""

_SHELLS: Final = ("bash", "zsh", "fish")
_EPILOG: Final = """\
examples:
  eval "$(stowplan completion bash)"       # in ~/.bashrc; zsh likewise
  stowplan completion fish | source        # in ~/.config/fish/config.fish
"""


def main(arguments: Sequence[str]) -> int:
    """Print the code that a shell runs to complete the command line."""
    shell = parser().parse_args(arguments).shell
    return exit_code(lambda: _print(shell), unread=1)


def _print(shell: str) -> int:
    from argcomplete import shell_integration  # noqa: PLC0415 (no other verb needs it)

    print(shell_integration.shellcode(["stowplan"], shell=shell), flush=True)  # noqa: T201 (prints for users)
    return 0


def complete(verbs: Mapping[str, str], load: Callable[[str], ModuleType]) -> None:
    """Write the completions of the command line that the shell set, and exit.

    `verbs` are the descriptions by verb. Only the module of the verb that was typed is loaded.
    """
    import argcomplete  # noqa: PLC0415 (loaded only for completions)

    typed = os.environ.get("COMP_LINE", "").split()
    whole = argparse.ArgumentParser(prog=program())
    added = whole.add_subparsers()
    for verb, purpose in verbs.items():
        own = getattr(load(verb), "parser", None) if verb in typed[1:2] else None
        added.add_parser(verb, help=purpose, add_help=own is None, parents=[own()] if own else [])
    argcomplete.autocomplete(whole)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = command_parser(
        "completion", "Print the code that lets a shell complete verbs, options and files.", epilog=_EPILOG
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")
    return parser
