"""Completion of the command line, in the shell that is on every machine and by the protocol of all three."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from apiserver import cli

COMMAND = Path(sys.executable).parent / "stowplan"

CASES = {
    "a verb": ("stowplan do", ["doctor", "downgrade"]),
    "an option of the verb that was typed": ("stowplan status --wat", ["--watch"]),
    "a value of an option": ("stowplan explain -o j", ["json"]),
    "an option of a verb about files": ("stowplan check --outp", ["--output"]),
    "a release": ("stowplan downgrade --to-release v0.7", ["v0.7.0"]),
    "a shell": ("stowplan completion f", ["fish"]),
    "nothing of other verbs after an unknown one": ("stowplan none --wat", []),
}


@pytest.mark.parametrize(("line", "want"), CASES.values(), ids=CASES.keys())
def test_what_was_typed_is_completed(line: str, want: list[str], tmp_path: Path) -> None:
    """The shell asks with the line; only the typed verb is loaded."""
    output = tmp_path / "completions"
    asked = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(output), "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }  # fmt: skip
    subprocess.run([COMMAND], env=os.environ | asked, check=False, capture_output=True, timeout=60)
    words = [word.strip() for word in output.read_text("utf-8").split("\n") if word.strip()]
    assert words == want


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_each_shell_names_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bash runs its own code in the next test."""
    assert cli.main(["completion", shell]) == 0
    assert "stowplan" in capsys.readouterr().out


def test_bash_completes_with_the_printed_code(tmp_path: Path) -> None:
    """As after a tab in an interactive shell."""
    code = subprocess.run([COMMAND, "completion", "bash"], check=True, capture_output=True, text=True).stdout
    script = tmp_path / "try.sh"
    script.write_text(
        f"export PATH={COMMAND.parent}:$PATH\n{code}\n"
        "COMP_LINE='stowplan uninst' COMP_POINT=15 COMP_TYPE=9 COMP_WORDS=(stowplan uninst) COMP_CWORD=1\n"
        "_python_argcomplete stowplan uninst stowplan\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n',
        "utf-8",
    )
    answer = subprocess.run(["bash", script], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "uninstall"
