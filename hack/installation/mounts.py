"""Replaces the kubelet: keeps directories equal to the Secrets that pods would mount."""

from __future__ import annotations

import base64
import threading
from http.client import HTTPException
from pathlib import Path
from typing import Final

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError

_POLL_SECONDS: Final = 0.5
"""Every read costs the API server and etcd 1.6 ms; a kubelet takes up to a minute."""


class SecretMount:
    """One Secret as a directory of files, updated until stopped."""

    def __init__(self, control_plane: ControlPlane, *, namespace: str, name: str) -> None:
        # Polled twice a second while an installation runs, so kubectl processes would be too slow.
        self._client = Client(control_plane.server, control_plane.directory / "pki")
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
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
        """Stop following; the files stay."""
        self._stop.set()
        self._thread.join()
        self._client.close()

    def is_filled(self) -> bool:
        """Tell whether the Secret existed at the last poll."""
        return bool(self._content)

    def _follow(self) -> None:
        while not self._stop.is_set():
            content = self._read()
            if content and content != self._content:
                self._write(content)
                self._content = content
            self._stop.wait(_POLL_SECONDS)

    def _read(self) -> dict[str, bytes]:
        """Return the Secret's data; empty if it does not exist or the API server is unreachable."""
        try:
            secret = self._client.value("GET", self._path)
        except (RefusedError, OSError, HTTPException):
            return {}
        data: dict[str, str] = secret.get("data") or {}
        return {key: base64.b64decode(text) for key, text in data.items()}

    def _write(self, content: dict[str, bytes]) -> None:
        for key, value in content.items():
            _replace(self.directory / key, value)


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    fresh.replace(path)
