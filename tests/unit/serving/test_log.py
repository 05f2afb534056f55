"""One event, one line, whatever is in it."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from apiserver.serving.log import configure_logging
from apiserver.serving.log_record import console_line, json_line
from apiserver.serving.logger import EventLogger
from apiserver.serving.structured import forward_structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOW = datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=UTC)


class Hostile:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    """Build lists in lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> dict[str, Any]:
    """Build an object that holds itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


HOSTILE = {
    "a forged line": 'x\n{"level":"info","event":"forged"}',
    "other line ends": "a\rb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h",
    "terminal commands": "\x1b[2J\x1b]0;title\x07",
    "text that turns around": "\u202eabc",
    "half a character": "\ud800 \udfff",
    "nul": "\x00",
    "bytes": b"\xff\n",
    "not a number": float("nan"),
    "infinity": [float("inf"), -float("inf")],
    "a number beyond any integer": 10**400,
    "an object without a face": Hostile(),
    "keys that are no text": {1: 2, None: 3, (4, "\n"): 5, Hostile(): 6},
    "a set": {1, 2},
    "very deep": nested(10_000),
    "endless": endless(),
    "very long": "x" * 5_000_000,
    "very wide": list(range(1_000_000)),
    "many keys": {str(number): number for number in range(100_000)},
    "an exception": ValueError("a\nb"),
}


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Send log lines into a text; put everything back afterwards."""
    stream = io.StringIO()
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = [*root.handlers], root.level
    configure_logging(format="json", stream=stream, now=lambda: NOW)
    forward_structlog()
    yield stream
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers, sys.excepthook = handlers, hook
    root.setLevel(level)


@pytest.mark.parametrize("what", HOSTILE)
def test_json_survives_anything(what: str) -> None:
    """Every value, as content, as event and as name, makes one line of bounded size that parses."""
    value = HOSTILE[what]
    line = json_line({"event": value, "level": "info", str(what): value})

    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert len(line) < 500_000
    assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("colour", [True, False])
def test_console_survives_anything(what: str, *, colour: bool) -> None:
    """For people, too, a value can neither end the line nor command the terminal."""
    line = console_line({"event": HOSTILE[what], "level": "info", "value": HOSTILE[what]}, colour=colour)
    bare = line.replace("\x1b[32m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")

    assert bare.isprintable()


@given(st.recursive(st.text() | st.binary() | st.floats() | st.integers(), st.lists))
def test_any_value_makes_one_line(value: object) -> None:
    """The same for whatever hypothesis thinks of."""
    line = json_line({"event": "e", "value": value})

    assert len(line.splitlines()) == 1
    assert json.loads(line)["event"] == "e"


LOGGERS = {"our own": EventLogger, "structlog": structlog.get_logger}


@pytest.mark.parametrize("logger", LOGGERS.values(), ids=LOGGERS.keys())
def test_members_and_their_order(lines: io.StringIO, logger: Callable[[str], Any]) -> None:
    """Time, level, logger and event come first; a member called `time` does not hide the time."""
    logger("a.b").warning("it happened", z=1, time="never")
    record = json.loads(lines.getvalue())

    assert list(record.items()) == [
        ("time", "2026-07-01T12:00:00.000005Z"),
        ("level", "warning"),
        ("logger", "a.b"),
        ("event", "it happened"),
        ("z", 1),
    ]


def test_levels(lines: io.StringIO) -> None:
    """What is below the level is not written, from whichever library it comes."""
    for logger in (structlog.get_logger(), EventLogger("ours"), logging.getLogger("other")):
        logger.debug("quiet")
        logger.info("loud")

    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == ["loud"] * 3


def test_the_standard_library_logs_the_same_lines(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of other libraries have the same form; one whose arguments do not fit is not lost."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if type(handler).__module__ == "apiserver.serving.log"]
    monkeypatch.setattr(root, "handlers", ours)  # the test runner's own would fail on the second record
    logging.getLogger("aiohttp.server").error("%s of\n%s", "one", "two")
    logging.getLogger("x").error("%d", "no number")
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())

    assert (first["event"], first["logger"], first["level"]) == ("one of\ntwo", "aiohttp.server", "error")
    assert second["event"] == "%d ('no number',)"


def test_exceptions_are_one_line(lines: io.StringIO) -> None:
    """A traceback, with causes, is a member of its event, from either library; a long one keeps its end."""
    error = ValueError("x" * 100_000 + "\nthe end")
    for logger in (structlog.get_logger(), EventLogger("ours"), logging.getLogger("x")):
        logger.error("failed", exc_info=error)
    records = [json.loads(line) for line in lines.getvalue().splitlines()]

    assert [record["exception"][-7:] for record in records] == ["the end"] * 3


def test_an_exception_that_is_being_handled_is_told(lines: io.StringIO) -> None:
    """By both loggers in the same words; members stay beside it."""
    for logger in (structlog.get_logger(), EventLogger("ours")):
        try:
            int("the reason")
        except ValueError:
            logger.exception("failed", uid="u")
    records = [json.loads(line) for line in lines.getvalue().splitlines()]

    assert [(record["level"], record["uid"]) for record in records] == [("error", "u")] * 2
    assert all("the reason" in record["exception"].splitlines()[-1] for record in records)


def test_warnings_are_logged(lines: io.StringIO) -> None:
    """A Python warning is a log line."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)

    assert "careful" in json.loads(lines.getvalue())["event"]


def test_console_lines_are_for_people() -> None:
    """Words first, members after, quoted where they need it, and a traceback below."""
    line = console_line(
        {
            "event": "leading",
            "level": "info",
            "time": "2026-07-01T12:00:00.123456Z",
            "logger": "x",
            "lease": "a",
            "why": "two words",
            "count": 3,
            "exception": "Traceback\nValueError",
        },
        colour=False,
    )

    assert line == '12:00:00.123 info     leading lease=a why="two words" count=3\n  Traceback\n  ValueError'


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("raise ValueError('a\\nb')", id="the main thread"),
        pytest.param(
            "import threading\n"
            "thread = threading.Thread(target=lambda: 1 / 0)\n"
            "thread.start()\nthread.join()\nraise SystemExit(1)",
            id="another thread",
        ),
        pytest.param(
            "import asyncio\n"
            "async def f():\n"
            "    asyncio.get_running_loop().call_soon(lambda: 1 / 0)\n"
            "    await asyncio.sleep(0)\n"
            "asyncio.run(f())\nraise SystemExit(1)",
            id="a callback of the event loop",
        ),
    ],
)
def test_what_nobody_catches_is_one_line(program: str) -> None:
    """An uncaught exception is one JSON line with its traceback, wherever it is raised."""
    start = "from apiserver.serving.log import configure_logging\nconfigure_logging()\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()

    assert done.returncode == 1
    assert "Error" in json.loads(line)["exception"]
