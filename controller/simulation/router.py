"""Spreads the requests of one model over its engines, as an endpoint picker in a gateway does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.simulation.engine import Engine
    from controller.simulation.request import Completion, Request


class Router:
    """The engines of one model by name, and the requests that no engine has yet.

    A request goes to the engine with the shortest queue, then with the emptiest KV cache, then by name.
    While there is no engine, requests are held and keep waiting; a request that fits no engine's KV cache
    is refused.
    """

    def __init__(self) -> None:
        self.engines: dict[str, Engine] = {}
        self.held: deque[Request] = deque()
        self.arrived = 0
        self.refused = 0
        self.retried = 0
        self.finished = 0

    @property
    def unfinished(self) -> int:
        """Requests that are held, waiting or running."""
        return len(self.held) + sum(engine.waiting + engine.running for engine in self.engines.values())

    def join(self, name: str, engine: Engine, *, now_us: int) -> None:
        """Add an engine that has advanced to `now_us`; held requests go out at once.

        Raises ValueError if the name is taken.
        """
        if name in self.engines:
            raise ValueError(f"an engine named {name!r} is there already; leave() it first")
        self.engines[name] = engine
        while self.held:
            self._dispatch(self.held.popleft(), now_us=now_us)

    def leave(self, name: str, *, now_us: int) -> int:
        """Remove an engine; its unfinished requests start again elsewhere. Returns how many.

        Raises KeyError for an unknown name.
        """
        requests = self.engines.pop(name).drain()
        for request in requests:
            self._dispatch(request, now_us=now_us)
        self.retried += len(requests)
        return len(requests)

    def submit(self, request: Request, *, now_us: int) -> None:
        """Take a new request; the engines must have advanced to `now_us`."""
        self.arrived += 1
        self._dispatch(request, now_us=now_us)

    def advance(self, until_us: int) -> list[Completion]:
        """Advance all engines and return what finished, engine by engine."""
        finished = [done for engine in self.engines.values() for done in engine.advance(until_us)]
        self.finished += len(finished)
        return finished

    def _dispatch(self, request: Request, *, now_us: int) -> None:
        if not self.engines:
            self.held.append(request)
            return
        fitting = [
            (engine.waiting, engine.kv_usage, name)
            for name, engine in self.engines.items()
            if engine.profile.fits(prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens)
        ]
        if not fitting:
            self.refused += 1
            return
        self.engines[min(fitting)[2]].submit(request, now_us=now_us)
