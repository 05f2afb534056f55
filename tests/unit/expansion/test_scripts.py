"""The scripts that run in pods: complete downloads without repetition, and a stop when an engine is idle."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.models import backend, engine_of, model, one

from apiserver.schema.json import Json
from controller.expansion.expansion import expand

HF = """#!/bin/sh
# As hf does: what an attempt left is gone on with.
echo "$@" >> "$LOG"
[ -e "$FAILS" ] && { touch "$4/part"; rm "$FAILS"; exit 1; }
touch "$4/model.safetensors"
"""
AWS = """#!/bin/sh
echo "$@" >> "$LOG"
touch "$4/model.safetensors"
"""


class Pod:
    """Runs the init containers of a Deployment with stubs of the download programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.fails = folder / "fails"
        self.log.touch()
        programs = folder / "bin"
        programs.mkdir()
        for name, text in (("hf", HF), ("aws", AWS)):
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "FAILS": str(self.fails),
        }

    def start(self, container: Json, **environment: str) -> subprocess.Popen[bytes]:
        """Start an init container, with folders of the test as its mounts."""
        words = [
            word.replace("/weights/", f"{self.folder}/weights/").replace(
                "/sources/", f"{self.folder}/sources/"
            )
            for word in container["command"]
        ]
        return subprocess.Popen(words, env=self._environment | environment)

    def calls(self) -> list[str]:
        """Return the arguments of the program calls."""
        text = self.log.read_text(encoding="utf-8").replace(str(self.folder), "")
        return [line.rpartition("-")[0] for line in text.splitlines()]


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """Return a pod with an empty cache."""
    return Pod(tmp_path)


def fetchers(**members: Any) -> list[Json]:
    """Return the init containers of a backend."""
    deployment = one(expand(model(backend(**members))).objects, "Deployment")
    found: list[Json] = deployment["spec"]["template"]["spec"].get("initContainers", [])
    return found


def test_a_complete_download_is_not_repeated(pod: Pod) -> None:
    """A second pod with the same cache uses it."""
    [container] = fetchers()

    assert [pod.start(container).wait() for _ in range(2)] == [0, 0]
    assert pod.calls() == [
        "download Qwen/Qwen2.5-0.5B-Instruct --local-dir /weights/Qwen-Qwen2.5-0.5B-Instruct"
    ]


def test_pods_that_share_a_cache_download_once(pod: Pod) -> None:
    """The others wait for it."""
    [container] = fetchers(cacheURI="pvc://models")
    running = [pod.start(container) for _ in range(4)]

    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert len(pod.calls()) == 1


def test_an_interrupted_download_is_resumed(pod: Pod) -> None:
    """It does not count as complete, and its files are kept."""
    [container] = fetchers()
    pod.fails.touch()

    assert [pod.start(container).wait() for _ in range(2)] == [1, 0]
    assert len(pod.calls()) == 2
    assert sorted(path.name for path in pod.folder.glob("weights/*/*")) == ["model.safetensors", "part"]


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [({}, ""), ({"ENDPOINT": "http://minio:9000"}, " --endpoint-url http://minio:9000")],
)
def test_a_bucket_is_read_at_its_endpoint(pod: Pod, environment: dict[str, str], endpoint: str) -> None:
    """`ENDPOINT` defines it; the default is that of AWS."""
    [container] = fetchers(modelURI="s3://bucket/llama")

    assert pod.start(container, **environment).wait() == 0
    text = pod.log.read_text(encoding="utf-8").replace(str(pod.folder), "")
    assert text.startswith("s3 sync s3://bucket/llama /weights/bucket-llama-")
    assert text.rstrip().endswith(endpoint.strip())


def test_a_volume_is_copied_to_a_cache(pod: Pod) -> None:
    """A disk of the node can be much faster."""
    source = pod.folder / "sources" / "claim" / "llama"
    source.mkdir(parents=True)
    (source / "model.safetensors").write_text("weights", encoding="utf-8")
    [container] = fetchers(modelURI="pvc://claim/llama", cacheURI="hostpath:///mnt/models")

    assert pod.start(container).wait() == 0
    [copied] = pod.folder.glob("weights/*/model.safetensors")
    assert copied.read_text(encoding="utf-8") == "weights"

    # An interrupted copy is newer than its source.
    copied.write_text("wei", encoding="utf-8")
    copied.parent.with_name(f"{copied.parent.name}.complete").unlink()
    assert pod.start(container).wait() == 0
    assert copied.read_text(encoding="utf-8") == "weights"


def test_without_a_cache_the_engine_reads_a_volume_directly() -> None:
    """Nothing is copied."""
    deployment = one(expand(model(backend(modelURI="pvc://claim/llama/8b"))).objects, "Deployment")
    words = engine_of(deployment)["command"]

    assert "initContainers" not in deployment["spec"]["template"]["spec"]
    assert words[words.index("--model") + 1] == "/sources/claim/llama/8b"
    assert {"name": "source-0", "mountPath": "/sources/claim", "readOnly": True} in engine_of(deployment)[
        "volumeMounts"
    ]


@contextmanager
def engine(answers: list[str]) -> Iterator[int]:
    """Serve the pages of metrics in turn, and then the last one forever. Yields the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[0].encode())
            if len(answers) > 1:
                answers.pop(0)

        def log_message(self, *_: object) -> None:
            """Discard the message."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "busy",
    [
        'vllm:num_requests_running{model_name="m"} 1.0\nvllm:num_requests_waiting{model_name="m"} 0.0\n',
        "vllm:num_requests_running 0.0\nvllm:num_requests_waiting 3\n",
        'sglang:num_running_reqs{model_name="m"} 2.0\n',
    ],
)
def test_an_engine_stops_when_no_requests_are_left(busy: str) -> None:
    """It is polled until no request is running or waiting."""
    answers = [busy, busy.translate(str.maketrans("123", "000"))]
    deployment = one(expand(model()).objects, "Deployment")
    words = engine_of(deployment)["lifecycle"]["preStop"]["exec"]["command"]
    with engine(answers) as port:
        command = [*words[:-2], f"http://127.0.0.1:{port}/metrics", "0"]
        environment = os.environ | {"http_proxy": "http://127.0.0.1:1"}  # the proxy is for downloads

        assert subprocess.run(command, check=False, timeout=60, env=environment).returncode == 0
    assert len(answers) == 1
