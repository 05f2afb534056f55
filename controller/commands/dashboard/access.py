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

COOKIE: Final = "stowplan-dashboard"
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
            return _with_cookie(self.token)
        if self._is_token(request.cookies.get(COOKIE, "")):
            return None
        text = "Open the whole URL that the command printed: it contains a token."
        return page_response(message_page("No access", text), status=403)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


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
            return await self._limited(request)
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        if session is None or session.ends_seconds < self._seconds():
            return page_response(login_page(""), status=401)
        if self._seconds() - session.reviewed_seconds > _REVIEWED_SECONDS:
            if problem := await self._why_forbidden(session.user):
                del self._sessions[request.cookies[COOKIE]]
                return page_response(login_page(problem), status=403)
            self._sessions[request.cookies[COOKIE]] = replace(session, reviewed_seconds=self._seconds())
        return None

    async def _limited(self, request: web.Request) -> web.Response:
        if self._waiting >= _MOST_WAITING:
            return page_response(login_page("Many users log in at the moment: try again."), status=429)
        self._waiting += 1
        try:
            async with self._gate:
                return await self._login(request)
        finally:
            self._waiting -= 1

    async def _login(self, request: web.Request) -> web.Response:
        token = str((await request.post()).get("token", "")).strip()
        user, problem = await self._user_of(token) if token else ({}, "Enter a token.")
        problem = problem or await self._why_forbidden(user)
        if problem:
            return page_response(login_page(problem), status=403)
        now = self._seconds()
        live = {name: item for name, item in self._sessions.items() if item.ends_seconds > now}
        while len(live) >= _MOST_SESSIONS:
            del live[next(iter(live))]
        name = secrets.token_urlsafe(24)
        live[name] = _Session(user=user, ends_seconds=now + SESSION_SECONDS, reviewed_seconds=now)
        self._sessions = live
        return _with_cookie(name)

    async def _user_of(self, token: str) -> tuple[Json, str]:
        """Return the user of a token, and why there is none."""
        review = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        try:
            answer = await self._cluster.create(TOKEN_REVIEWS, review)
        except ClusterError as error:
            return {}, f"The token cannot be reviewed: {error.message}"
        status = as_object(answer.get("status"))
        if status.get("authenticated") is not True:
            return {}, "The token is not valid in this cluster."
        return as_object(status.get("user")), ""

    async def _why_forbidden(self, user: Json) -> str:
        """Return why a user may not see the page; empty if that is allowed."""
        try:
            missing = [resource.plural for resource in _NEEDED if not await self._may_list(user, resource)]
        except ClusterError as error:
            return f"Your permissions cannot be reviewed: {error.message}"
        if not missing:
            return ""
        return f"{user.get('username')} may not list {', '.join(missing)} in all namespaces."

    async def _may_list(self, user: Json, resource: Resource) -> bool:
        review = access_review(
            user, verb="list", namespace="", group=resource.group, resource=resource.plural, name=""
        )
        return is_allowed(await self._cluster.create(SUBJECT_ACCESS_REVIEWS, review))


def _with_cookie(value: str) -> web.Response:
    answer = web.Response(status=303, headers={"Location": "/"})
    answer.set_cookie(COOKIE, value, httponly=True, samesite="Strict", path="/")
    return answer
