"""Who may see the dashboard: whoever has the token in the URL, or in a cluster, users with their own tokens.

In a cluster, the page shows what its service account may read. So a user must be allowed to list the same:
kube-apiserver is asked whose token it is (TokenReview), and what this user may list (SubjectAccessReview).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import parse_qs

from aiohttp import web

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.resource import (
    NODES,
    PODS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.schema.json import Json, as_object
from controller.commands.dashboard.page import login_page, message_page

LOGIN: Final = "/login"
SESSION_SECONDS: Final = 3600.0
"""How long a user is logged in."""

_REVIEWED_SECONDS: Final = 60.0
"""How long it is assumed that a user's permissions have not changed."""

_MOST_SESSIONS: Final = 256
_AT_ONCE: Final = 4
_MOST_WAITING: Final = 16
_NEEDED: Final = (VARIANT_AUTOSCALINGS, PODS, NODES)
"""What a user must be allowed to list in all namespaces."""


def cookie_name(request: web.Request) -> str:
    """Return the name of the cookie: browsers send those of other ports, too."""
    return f"stowplan-dashboard-{request.url.port}"


def page_response(text: str, *, status: int = 200) -> web.Response:
    """Return a page as a response."""
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


class Access(Protocol):
    """Admits requests."""

    async def admit(self, request: web.Request) -> web.Response | None:
        """Return None to admit a request, or the response to it."""


class TokenInUrl:
    """Admits whoever has the token: once in the URL, and then as a cookie."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    async def admit(self, request: web.Request) -> web.Response | None:
        """Admit requests with the cookie, and set it for one with the token."""
        if self._is_token(request.query.get("token", "")):
            return _with_cookie(request, self.token)
        if self._is_token(request.cookies.get(cookie_name(request), "")):
            return None
        text = "Open the whole URL that the command printed: it contains a token."
        return page_response(message_page("No access", text), status=403)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="surrogateescape"), self.token.encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Session:
    user: Json
    ends_seconds: float
    reviewed_seconds: float


class UserTokens:
    """Admits users who log in with a token of the cluster, as long as they may list what the page shows."""

    def __init__(self, cluster: Cluster, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Create it; `seconds` is a monotonic clock."""
        self._cluster = cluster
        self._seconds = seconds
        self._sessions: dict[str, _Session] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def admit(self, request: web.Request) -> web.Response | None:
        """Admit requests of a session; others get the form to log in."""
        if request.path == LOGIN and request.method == "POST":
            return await self._login_in_turn(request)
        name = request.cookies.get(cookie_name(request), "")
        session = self._sessions.get(name)
        if session is None or session.ends_seconds < self._seconds():
            return page_response(login_page(""), status=401)
        if self._seconds() - session.reviewed_seconds <= _REVIEWED_SECONDS:
            return None
        try:
            problem = await self._why_forbidden(session.user)
        except ClusterError as error:
            text = f"Your permissions cannot be reviewed: {error.message}"
            return page_response(message_page("Try again", text), status=503)
        if problem:
            self._sessions.pop(name, None)
            return page_response(login_page(problem), status=403)
        if name in self._sessions:  # not logged out by a concurrent request
            self._sessions[name] = replace(session, reviewed_seconds=self._seconds())
        return None

    async def _login_in_turn(self, request: web.Request) -> web.Response:
        if self._waiting >= _MOST_WAITING:
            return page_response(login_page("Many users log in at the moment: try again."), status=429)
        self._waiting += 1
        try:
            async with self._gate:
                return await self._login(request)
        finally:
            self._waiting -= 1

    async def _login(self, request: web.Request) -> web.Response:
        # Whatever the request says about its encoding: a token is ASCII.
        form = parse_qs((await request.read()).decode("ascii", "replace"))
        token = form.get("token", [""])[0].strip()
        user: Json = {}
        try:
            user, problem = await self._user_of(token) if token else (user, "Enter a token.")
            problem = problem or await self._why_forbidden(user)
        except ClusterError as error:
            problem = f"The token cannot be reviewed: {error.message}"
        if problem:
            return page_response(login_page(problem), status=403)
        now = self._seconds()
        live = {name: item for name, item in self._sessions.items() if item.ends_seconds > now}
        while len(live) >= _MOST_SESSIONS:
            del live[next(iter(live))]
        name = secrets.token_urlsafe(24)
        live[name] = _Session(user=user, ends_seconds=now + SESSION_SECONDS, reviewed_seconds=now)
        self._sessions = live
        return _with_cookie(request, name)

    async def _user_of(self, token: str) -> tuple[Json, str]:
        """Return the user of a token, and why there is none. Raises ClusterError."""
        review = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        answer = await self._cluster.create(TOKEN_REVIEWS, review)
        status = as_object(answer.get("status"))
        if status.get("authenticated") is not True:
            return {}, "The token is not valid in this cluster."
        return as_object(status.get("user")), ""

    async def _why_forbidden(self, user: Json) -> str:
        """Return why a user may not see the page; empty if that is allowed. Raises ClusterError."""
        missing = [resource.plural for resource in _NEEDED if not await self._may_list(user, resource)]
        if not missing:
            return ""
        return f"{user.get('username')} may not list {', '.join(missing)} in all namespaces."

    async def _may_list(self, user: Json, resource: Resource) -> bool:
        review = access_review(
            user, verb="list", namespace="", group=resource.group, resource=resource.plural, name=""
        )
        return is_allowed(await self._cluster.create(SUBJECT_ACCESS_REVIEWS, review))


def _with_cookie(request: web.Request, value: str) -> web.Response:
    answer = web.Response(status=303, headers={"Location": "/"})
    answer.set_cookie(cookie_name(request), value, httponly=True, samesite="Strict", path="/")
    return answer
