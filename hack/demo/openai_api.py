"""The API of a simulated engine besides metrics: its models, loading of adapters, and completions.

Paths, codes and fields are those of vLLM, and for adapters also those of SGLang. A completion is answered at
once and repeats the prompt; only the simulated requests model token times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from apiserver.schema.json import Json


@dataclass(slots=True)
class Served:
    """The model that an engine serves, and its adapters."""

    model: str
    adapters: dict[str, str] = field(default_factory=dict)
    """The folder of each adapter, by name."""

    broken: frozenset[str] = frozenset()
    """Names of adapters that the engine cannot load."""


class OpenAiApi:
    """The request handlers; `served_by` returns the engine of a request."""

    def __init__(self, served_by: Callable[[web.Request], Served]) -> None:
        self._served_by = served_by

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes to an application."""
        router.add_get("/v1/models", self._models)
        router.add_post("/v1/completions", self._complete)
        for prefix in ("/v1", ""):  # vLLM, SGLang
            router.add_post(f"{prefix}/load_lora_adapter", self._load)
            router.add_post(f"{prefix}/unload_lora_adapter", self._unload)

    async def _models(self, request: web.Request) -> web.Response:
        served = self._served_by(request)
        cards: list[Json] = [{"id": served.model, "object": "model", "root": served.model, "parent": None}]
        for name, path in served.adapters.items():
            cards.append({"id": name, "object": "model", "root": path, "parent": served.model})
        return web.json_response({"object": "list", "data": cards})

    async def _load(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name, path = _text(body, "lora_name"), _text(body, "lora_path")
        if name in served.adapters:
            raise _refusal(web.HTTPBadRequest, f"The lora adapter '{name}' has already been loaded.")
        if name in served.broken:
            raise _refusal(web.HTTPBadRequest, f"Call to add_lora method failed: {name} has a wrong rank")
        served.adapters[name] = path
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def _unload(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name = _text(body, "lora_name")
        if served.adapters.pop(name, None) is None:
            raise _refusal(web.HTTPNotFound, f"The lora adapter '{name}' cannot be found.")
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def _complete(self, request: web.Request) -> web.Response:
        served, body = self._served_by(request), await _body(request)
        name, prompt = _text(body, "model"), _text(body, "prompt")
        if name != served.model and name not in served.adapters:
            raise _refusal(web.HTTPNotFound, f"The model `{name}` does not exist.")
        tokens = len(prompt.split())
        usage = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens}
        choice = {"index": 0, "text": prompt, "finish_reason": "stop"}
        return web.json_response(
            {"object": "text_completion", "model": name, "choices": [choice], "usage": usage}
        )


async def _body(request: web.Request) -> Json:
    try:
        body = await request.json()
    except ValueError as error:
        raise _refusal(web.HTTPBadRequest, f"no JSON: {error}") from error
    if not isinstance(body, dict):
        raise _refusal(web.HTTPBadRequest, "not a JSON object")
    return body


def _text(body: Json, name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text:
        raise _refusal(web.HTTPBadRequest, f"{name}: a text is needed")
    return text


def _refusal(kind: type[web.HTTPError], message: str) -> web.HTTPError:
    error = {"message": message, "code": kind.status_code}
    return kind(text=json.dumps({"error": error}), content_type="application/json")
