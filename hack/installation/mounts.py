"""Replaces the kubelet: keeps directories equal to the Secrets that pods would mount."""

from __future__ import annotations

import base64
import threading
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError

_WATCH_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 0.5


class SecretMount:
    """One Secret as a directory of files, updated until stopped."""

    def __init__(self, control_plane: ControlPlane, *, namespace: str, name: str) -> None:
        self._client = Client(control_plane.server, control_plane.directory / "pki")
        self._collection = f"/api/v1/namespaces/{namespace}/secrets"
        self._name = name
        self._content: dict[str, bytes] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"mount-{name}", daemon=True)
        self.directory = control_plane.directory / f"mount-{name}"
        """The directory of the files."""

    def start(self) -> None:
        """Start following the Secret; files appear once it exists."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop updating; the files stay, and the thread ends with its watch."""
        self._stop.set()

    def is_filled(self) -> bool:
        """Tell whether the Secret has existed."""
        return bool(self._content)

    def _follow(self) -> None:
        """Watch the Secret, which costs the API server less than polling it, until stopped."""
        while not self._stop.is_set():
            try:
                for secret in self._client.watch(self._collection, self._name, seconds=_WATCH_SECONDS):
                    self._take(secret)
            except (RefusedError, OSError, HTTPException):  # the API server is down for a moment
                self._stop.wait(_RETRY_SECONDS)

    def _take(self, secret: dict[str, Any]) -> None:
        data: dict[str, str] = secret.get("data") or {}
        content = {key: base64.b64decode(text) for key, text in data.items()}
        if content and content != self._content and not self._stop.is_set():
            self._write(content)
            self._content = content

    def _write(self, content: dict[str, bytes]) -> None:
        for key, value in content.items():
            _replace(self.directory / key, value)


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    fresh.replace(path)
