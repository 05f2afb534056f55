"""Options of a process: its listeners, the limits of its clients, and its shutdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits on what clients may hold, and on the duration of a shutdown."""

    keep_alive_seconds: float = 120.0
    """How long an idle connection stays open. API servers close theirs after 90 s, so they close first and
    never send a request on a connection that is being closed."""
    unfinished_request_seconds: float = 10.0
    """How long a request may take to arrive completely."""
    connections: int = 1024
    """The maximum number of connections of one listener."""
    finish_seconds: float = 20.0
    """How long requests in flight, and then background work, may take to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """The listeners of a process and its drain period. A port of 0 takes any free one; None opens none."""

    bind_address: str | None = None
    """None means all addresses."""
    port: int | None = None
    """The HTTPS port of the application."""
    metrics_port: int | None = None
    health_port: int | None = None
    certificate_path: Path | None = None
    key_path: Path | None = None
    drain_seconds: float = 5.0
    """How long clients have to notice the shutdown; not used without an application."""
    limits: Limits = field(default_factory=Limits)
