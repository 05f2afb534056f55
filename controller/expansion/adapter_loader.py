"""The program of the container `adapters`, which keeps an engine's adapters equal to those listed in a file.

It downloads adapters, and loads and unloads them by the engine's API, in a loop. So an engine gets its
adapters again after a restart, and failures are retried. It serves two pages: `/` has the loaded and failed
adapters, `/ready` returns 200 once every adapter of a new engine is loaded or has failed.

This file runs on the Python of the engine's image, 3.9 or newer, and imports only the standard library.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TURN_SECONDS = 1.0
FIRST_RETRY_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 300.0
ASK_SECONDS = 10.0
LOAD_SECONDS = 600.0
MOST_FETCHES = 4
"""Maximum number of concurrent downloads."""

MOST_CHARACTERS = 300
"""Maximum length of a reported failure."""

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens URLs of the engine without the proxy that may be configured for downloads."""


_SILENT = (OSError, http.client.HTTPException)
"""Errors of a request without a valid response."""

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)
"""Errors of reading JSON with an unexpected structure."""


class Fetch:
    """The download of an adapter."""

    def __init__(self, options: dict[str, Any], source: str, path: str) -> None:
        self.path = path
        self._output = tempfile.TemporaryFile()
        command = ["/bin/sh", "-c", options["fetch"], "fetch", source, options["root"] + path]
        self._process = subprocess.Popen(
            command, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def is_over(self) -> bool:
        """Tell whether the download has ended, successfully or not."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Kill the download and its child processes. Downloaded files stay, so that it can be resumed."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def failure(self) -> str:
        """Return the last line of output if the download failed, else an empty string."""
        with self._output:
            self._output.seek(0)
            output = self._output.read().decode(errors="replace").replace("\r", "\n").strip()
        _tell(output)
        if self._process.returncode == 0:
            return ""
        return f"the download ended with code {self._process.returncode}: {output.rpartition(chr(10))[2]}"


class Loader:
    """Wanted and loaded adapters, and failures. `options` are those of the command line."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._fetching: dict[str, Fetch] = {}
        self._fetched: set[str] = set()
        self._retries: dict[str, tuple[str, float, float]] = {}
        """By name: the path that failed, the time of the next attempt, and the pause after that."""
        self.loaded: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.is_ready = False

    def page(self) -> dict[str, Any]:
        """Return the content of the status page."""
        return {"loaded": dict(self.loaded), "failed": dict(self.failed)}  # read by another thread

    def turn(self) -> None:
        """Read the list and the engine's state once, and do what is possible now."""
        try:
            adapters = self._listed_adapters()
        except (OSError, *_UNREADABLE) as error:
            _tell(f"the list of adapters cannot be read: {error!r}")
            return
        is_there = self._look()
        for name in [name for name in self.failed if name not in adapters]:
            self._forget(name)
        paths = {name: path for name, (_, path) in adapters.items()}
        self._reap(paths)
        for name, (source, path) in adapters.items():
            self._fetch(name, source, path)
        if is_there:
            self._change(paths)
            if all(name in self.failed or name in self.loaded for name in adapters):
                self.is_ready = True

    def _listed_adapters(self) -> dict[str, tuple[str, str]]:
        """Return source and path of each listed adapter, by name."""
        entries = json.loads(Path(self._options["list"]).read_text(encoding="utf-8"))
        return {name: (str(entry["source"]), str(entry["path"])) for name, entry in entries.items()}

    def _look(self) -> bool:
        """Read the engine's adapters; return whether it responded."""
        try:
            cards = json.loads(self._ask("/v1/models"))["data"]
            roots = {str(card["id"]): str(card.get("root")) for card in cards if card.get("parent")}
        except ConnectionRefusedError:
            self.loaded, self.is_ready = {}, False
            return False
        except _SILENT as error:
            _tell(f"the engine does not report its adapters: {error!r}")
            return False
        except _UNREADABLE as error:
            _tell(f"the engine's response cannot be read: {error!r}")
            return False
        loaded = {
            name: root for name, root in roots.items() if root.startswith(tuple(self._options["folders"]))
        }
        if self.loaded.keys() - loaded.keys():
            self.is_ready = False  # the engine was restarted
        self.loaded = loaded
        return True

    def _reap(self, adapters: dict[str, str]) -> None:
        """Record completed downloads, and stop those of adapters that are no longer wanted."""
        for name, fetch in list(self._fetching.items()):
            if fetch.is_over():
                del self._fetching[name]
                failure = fetch.failure()
                if not failure:
                    self._fetched.add(fetch.path)
                elif adapters.get(name) == fetch.path:
                    self._fail(name, fetch.path, failure)
            elif adapters.get(name) != fetch.path:
                fetch.stop()

    def _fetch(self, name: str, source: str, path: str) -> None:
        """Download an adapter, unless it exists, is being downloaded or failed recently."""
        if name in self._fetching or path in self._fetched or not self._may_try(name, path):
            return
        if len(self._fetching) < MOST_FETCHES:
            if source:
                try:
                    self._fetching[name] = Fetch(self._options, source, path)
                except OSError as error:
                    self._fail(name, path, f"the download cannot start: {error}")
            else:
                self._take_what_is_there(name, path)

    def _take_what_is_there(self, name: str, path: str) -> None:
        try:
            if self._is_whole(path):
                self._fetched.add(path)
            else:
                self._fail(name, path, f"there is nothing at {path} of this pod: restart it")
        except OSError as error:
            self._fail(name, path, f"{path} of this pod cannot be read: {error}")

    def _is_whole(self, path: str) -> bool:
        """Tell whether an adapter from an init container or a volume is complete."""
        folder = Path(self._options["root"] + path)
        is_in_cache = path.startswith(self._options["cache"])
        return folder.is_dir() and (not is_in_cache or folder.with_name(f"{folder.name}.complete").exists())

    def _change(self, adapters: dict[str, str]) -> None:
        """Unload adapters that are not wanted, and load wanted ones that are downloaded."""
        for name, path in list(self.loaded.items()):
            if adapters.get(name) != path and (name not in adapters or adapters[name] in self._fetched):
                failure = self._order(self._options["unload"], {"lora_name": name})
                if failure:
                    self._fail(name, path, f"the engine failed to unload it: {failure}")
                else:
                    del self.loaded[name]
        for name, path in adapters.items():
            if name in self.loaded or path not in self._fetched or not self._may_try(name, path):
                continue
            failure = self._order(self._options["load"], {"lora_name": name, "lora_path": path})
            if failure:
                self._fail(name, path, f"the engine failed to load it: {failure}")
            else:
                self._forget(name)
                self.loaded[name] = path

    def _may_try(self, name: str, path: str) -> bool:
        failed, again_seconds, _ = self._retries.get(name, ("", 0.0, 0.0))
        return path != failed or time.monotonic() >= again_seconds

    def _fail(self, name: str, path: str, text: str) -> None:
        failed, _, pause_seconds = self._retries.get(name, ("", 0.0, 0.0))
        pause_seconds = (
            min(2 * pause_seconds, LONGEST_RETRY_SECONDS) if path == failed else FIRST_RETRY_SECONDS
        )
        self._retries[name] = path, time.monotonic() + pause_seconds, pause_seconds
        self.failed[name] = text[:MOST_CHARACTERS]
        _tell(f"{name}: {text}")

    def _forget(self, name: str) -> None:
        self.failed.pop(name, None)
        self._retries.pop(name, None)

    def _order(self, path: str, body: dict[str, str]) -> str:
        """Request a change; return the engine's error, or an empty string on success."""
        try:
            self._ask(path, json.dumps(body).encode(), LOAD_SECONDS)
        except urllib.error.HTTPError as error:
            try:
                answer = error.read(MOST_CHARACTERS).decode(errors="replace")
            except _SILENT as silence:
                answer = repr(silence)
            return f"HTTP {error.code}: {answer}"
        except _SILENT as error:
            return str(error) or repr(error)
        return ""

    def _ask(self, path: str, body: bytes | None = None, timeout_seconds: float = ASK_SECONDS) -> bytes:
        headers = {"Content-Type": "application/json"}
        token = self._options["token"] or os.environ.get("VLLM_API_KEY")
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self._options["engine"] + path, body, headers)
        try:
            with _DIRECT.open(request, timeout=timeout_seconds) as answer:
                return bytes(answer.read())
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                raise error.reason from error
            raise


class Pages(ThreadingHTTPServer):
    """Serves a loader's state; without a host, on all addresses of the pod."""

    daemon_threads = True

    def __init__(self, host: str, port: int, loader: Loader) -> None:
        self.loader = loader
        if not host and socket.has_dualstack_ipv6():
            self.address_family = socket.AF_INET6
        super().__init__((host, port), Page)

    def server_bind(self) -> None:
        """Listen on IPv4 as well."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class Page(BaseHTTPRequestHandler):
    """Handles one request."""

    server: Pages

    def do_GET(self) -> None:
        """Answer `/ready` with its status code, and every path with the page."""
        is_well = self.path != "/ready" or self.server.loader.is_ready
        self.send_response(200 if is_well else 503)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.loader.page()).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing, as probes arrive every few seconds."""


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    """Run until the pod stops."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # the first process of a container has no default
    options = json.loads(sys.argv[1])
    loader = Loader(options)
    threading.Thread(
        target=Pages(options["host"], options["port"], loader).serve_forever, daemon=True
    ).start()
    while True:
        loader.turn()
        time.sleep(TURN_SECONDS)


if __name__ == "__main__":
    main()
