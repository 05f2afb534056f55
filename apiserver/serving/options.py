"""Where a process listens, what its clients may hold on to, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What clients may hold on to, and how long the end may take."""

    keep_alive_seconds: float = 120.0
    """How long an idle connection stays open. API servers close theirs after 90 s; so they are the first to,
    and never send a request into a connection that is being closed."""
    unfinished_request_seconds: float = 10.0
    """How long a request may take to arrive whole."""
    connections: int = 1024
    """How many connections one listener lets in."""
    finish_seconds: float = 20.0
    """How long requests in flight, and then background work, may take to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """Where a process listens and how it ends. A port of 0 takes any free one; None opens none."""

    bind_address: str | None = None
    """None: all addresses."""
    port: int | None = None
    """HTTPS, for the application."""
    metrics_port: int | None = None
    health_port: int | None = None
    certificate_path: Path | None = None
    key_path: Path | None = None
    drain_seconds: float = 5.0
    """How long clients get to notice that this process is going; not waited for without an application."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """What was opened."""

    https: int | None
    metrics: int | None
    health: int | None

    def __str__(self) -> str:
        """Name the open ones: `https 9443, health 8081`."""
        named = {"https": self.https, "metrics": self.metrics, "health": self.health}
        return ", ".join(f"{name} {port}" for name, port in named.items() if port is not None)
