"""Spreads the requests of one model over its engines, as an endpoint picker in a gateway does."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
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
        self._leaving: set[str] = set()
        self._first_tokens: dict[int, int] = {}
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

    def cordon(self, name: str) -> None:
        """Send an engine nothing new; it finishes what it can until it leaves. Raises KeyError."""
        if name not in self.engines:
            raise KeyError(name)
        self._leaving.add(name)

    def leave(self, name: str, *, now_us: int) -> int:
        """Remove an engine; its unfinished requests start again elsewhere. Returns how many.

        Raises KeyError for an unknown name.
        """
        given_up = self.engines.pop(name).drain()
        self._leaving.discard(name)
        for unfinished in given_up:
            if unfinished.first_token_us is not None:
                self._first_tokens.setdefault(unfinished.request.request_id, unfinished.first_token_us)
            self._dispatch(unfinished.request, now_us=now_us)
        self.retried += len(given_up)
        return len(given_up)

    def submit(self, request: Request, *, now_us: int) -> None:
        """Take a new request; the engines must have advanced to `now_us`."""
        self.arrived += 1
        self._dispatch(request, now_us=now_us)

    def advance(self, until_us: int) -> list[Completion]:
        """Advance all engines and return what finished, engine by engine."""
        completions = (done for engine in self.engines.values() for done in engine.advance(until_us))
        finished = [self._seen(done) for done in completions]
        self.finished += len(finished)
        return finished

    def _seen(self, done: Completion) -> Completion:
        """Return the completion as its client saw it: the first token may be from another engine."""
        first_token_us = self._first_tokens.pop(done.request.request_id, None)
        return done if first_token_us is None else replace(done, first_token_us=first_token_us)

    def _dispatch(self, request: Request, *, now_us: int) -> None:
        staying = {name: engine for name, engine in self.engines.items() if name not in self._leaving}
        if not staying:
            self.held.append(request)
            return
        fitting = [
            (engine.waiting, engine.kv_usage, name)
            for name, engine in staying.items()
            if engine.profile.fits(prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens)
        ]
        if not fitting:
            self.refused += 1
            return
        self.engines[min(fitting)[2]].submit(request, now_us=now_us)
