"""The HTTP server of the dashboard: its pages, and the state that they show.

It reads the cluster in the background, so a page never waits for it. A plan runs in a thread, one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from controller.commands.dashboard.access import Access, page_response
from controller.commands.dashboard.history import History, decisions, read_past, record
from controller.commands.dashboard.page import (
    View,
    fleet_page,
    message_page,
    question_page,
    what_if_page,
)
from controller.commands.dashboard.what_if import (
    Question,
    answer_to,
    change_inputs,
    plan_of,
    read_question,
    size_inputs,
)
from controller.commands.plan.configuring import ConfigurationResult, configuration_in_cluster
from controller.commands.plan.gathering import InputsResult
from controller.commands.status.assemble import fleet_of
from controller.commands.status.fleet import FleetState
from controller.commands.status.reading import LiveObjects, read_cluster
from controller.commands.status.run import gathering_of
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.prometheus_history import PrometheusHistory
from controller.observe.claim import OwnerKind
from controller.planning.decision import Plan
from controller.sizing.records import SizingSettings, VariantFacts

_NOT_FOUND: Final = 404
_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_DECIDED: Final = frozenset(map(str, OwnerKind))
_MOST_BYTES: Final = 16 << 10
"""Maximum size of a request: of a token."""

_WAITING_PLANS: Final = 4
"""What-if plans that wait for their turn; more are refused."""

_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LOG: Final = EventLogger(__name__)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _State:
    """What was read last."""

    view: View
    facts: Mapping[Key, VariantFacts]
    sizing: SizingSettings


class Dashboard:
    """Serves the pages about one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        access: Access,
        *,
        namespace: str | None,
        system: str,
        interval_seconds: float,
        past: PrometheusHistory | None = None,
    ) -> None:
        """Create it. `access` admits requests; `namespace` is None for all, `system` that of Stowplan.

        The hours before are read from `past`, a Prometheus that scrapes the controller.
        """
        self._cluster = cluster
        self._access = access
        self._namespace = namespace
        self._system = system
        self._interval_seconds = interval_seconds
        self._past = past
        self._state: _State | None = None
        self._problem = ""
        self._history: History = {}
        self._planning = asyncio.Lock()
        self._rendering = asyncio.Lock()
        self._rendered: tuple[View | None, str, str, str] = None, "", "", ""
        """The last page: of which state, with which problem, of which model, and its text."""

        self._present: tuple[_State | None, Plan | None] = None, None
        """The plan for the present cluster, and the state that it is for."""
        self._waiting = 0

    def application(self) -> web.Application:
        """Return the application; every request has to be admitted."""
        made = web.Application(middlewares=[self._guard], client_max_size=_MOST_BYTES)
        made.add_routes([web.get("/", self._fleet), web.get("/what-if", self._what_if)])
        return made

    async def watch(self) -> None:
        """Read the cluster again and again; never returns."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._interval_seconds)

    async def refresh(self) -> None:
        """Read the cluster once. If that fails, the last state stays, with a message."""
        try:
            live = await read_cluster(
                self._cluster, namespace=self._namespace, system=self._system, with_events=True
            )
        except ClusterError as error:
            self._problem = error.message
            _LOG.warning("cluster not read", error=error.message)
            return
        now = datetime.now(UTC)
        configuring, gathering, fleet = await asyncio.to_thread(_assemble, live, now, self._namespace or "")
        if self._past is not None:
            await self._read_past(self._past, fleet)
        self._history = record(self._history, fleet)
        self._problem = ""
        self._state = _State(
            view=View(
                host=self._cluster.host,
                fleet=fleet,
                inputs=gathering.inputs,
                history=self._history,
                decisions=decisions(live.events, _DECIDED),
                interval_seconds=self._interval_seconds,
            ),
            facts=gathering.facts or {},
            sizing=configuring.sizing,
        )

    async def _read_past(self, source: PrometheusHistory, fleet: FleetState) -> None:
        """Read the hours before, once; without an answer, the history begins now."""
        self._past = None
        models = {
            (item.namespace, item.name): (model.namespace, model.model_id)
            for model in fleet.models
            for item in model.variants
        }
        try:
            self._history = await read_past(source, models, now=fleet.time)
        except UnreadableMetricsError as error:
            _LOG.warning("no history", error=str(error))

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer whoever may see the page, with headers that forbid all but the page itself."""
        try:
            answer = await self._admit(request, handler)
        except web.HTTPException as error:
            text = "There is no such page." if error.status == _NOT_FOUND else error.reason
            answer = page_response(message_page(error.reason, text), status=error.status)
        answer.headers.update(_HEADERS)
        return answer

    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Admit users, and no other site's pages.

        The name in `Host` must be that of loopback: another name means that a page of another site resolves
        its own name to this address.
        """
        name = request.host.rpartition(":")[0] or request.host
        if name not in _NAMES:
            text = "Use the address of this machine."
            return page_response(message_page("Not here", text), status=421)
        return await self._access.admit(request) or await handler(request)

    async def _fleet(self, request: web.Request) -> web.Response:
        if self._state is None:
            text = self._problem or "The cluster is being read: reload this page in some seconds."
            return page_response(message_page("Not yet", text), status=503)
        view, model = self._state.view, request.query.get("model", "")
        # Of several tabs, one renders the page of a state.
        async with self._rendering:
            if self._rendered[:3] != (view, self._problem, model):
                text = await asyncio.to_thread(fleet_page, view, model=model, problem=self._problem)
                self._rendered = view, self._problem, model, text
            return page_response(self._rendered[3])

    async def _what_if(self, request: web.Request) -> web.Response:
        if self._state is None:
            return await self._fleet(request)
        state = self._state
        if not request.query:
            return page_response(question_page(state.view, Question(), ()))
        question, problems = read_question(request.query)
        if not problems and self._waiting >= _WAITING_PLANS:
            problems = ["other plans are being computed: try again"]
        if not problems:
            self._waiting += 1
            try:
                async with self._planning:
                    text, problems = await asyncio.to_thread(self._answer, state, question)
            finally:
                self._waiting -= 1
            if not problems:
                return page_response(text)
        return page_response(question_page(state.view, question, problems), status=400)

    def _answer(self, state: _State, question: Question) -> tuple[str, list[str]]:
        """Return the page with the answer to a question, or what is wrong with it."""
        after, problems = change_inputs(state.view.inputs, question)
        if problems:
            return "", list(problems)
        planned, before = self._present
        if before is None or planned is not state:
            before = plan_of(size_inputs(state.view.inputs, state.facts, state.sizing))
            self._present = state, before
        after = size_inputs(after, state.facts, state.sizing)
        return what_if_page(state.view, answer_to(question, after, before)), []


def _assemble(
    live: LiveObjects, now: datetime, namespace: str
) -> tuple[ConfigurationResult, InputsResult, FleetState]:
    configuring = configuration_in_cluster(live.settings)
    gathering = gathering_of(live, configuring, now=now)
    return configuring, gathering, fleet_of(live, gathering, now=now, namespace=namespace)
