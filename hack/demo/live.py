"""The demo on a terminal: one screen that is redrawn, and a picture of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from hack.demo.frame import Frame
from hack.demo.giving_way import gives_way
from hack.demo.screen import screen

_PICTURE_COLUMNS = 150


class LiveScreen:
    """Redraws the whole screen for each frame; notes are part of the frames."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, screen=True)
        self._console = console

    def update(self, frame: Frame) -> None:
        """Draw the frame."""
        self._live.start()
        self._live.update(screen(frame), refresh=True)

    def note(self, text: str) -> None:
        """Print the text before there is a screen; afterwards frames contain it."""
        if not self._live.is_started:
            self._console.print(text, highlight=False)

    def close(self) -> None:
        """Release the terminal."""
        self._live.stop()


def telling(frames: Sequence[Frame]) -> Frame:
    """Return the first frame with a preempted model and the first model on target, or the last frame."""
    for frame in frames:
        first, *others = frame.observation.models or (None,)
        if first and first.is_on_target and any(gives_way(v) for model in others for v in model.variants):
            return frame
    return frames[-1]


def save_picture(frame: Frame, path: Path, *, title: str) -> None:
    """Write the frame as SVG."""
    console = Console(record=True, width=_PICTURE_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(screen(frame))
    console.save_svg(str(path), title=title)
