"""Wait until an admission policy is enforced, some moments after it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.polling import wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable


def refused_with(attempt: Callable[[], subprocess.CompletedProcess[str]], *phrases: str) -> None:
    """Repeat a dry run of kubectl until it is refused with all phrases; fail with what it said last."""
    said = ""

    def is_refused() -> bool:
        nonlocal said
        said = attempt().stderr
        return all(phrase in said for phrase in phrases)

    wait_for(is_refused, lambda: f"a refusal with {phrases}, but {said or 'success'}")
