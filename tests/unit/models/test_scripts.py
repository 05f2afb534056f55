"""The scripts that run in pods: weights are fetched once and whole, and an engine stops when it is idle."""

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
from controller.models.expansion import expand

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
    """Runs the init containers of a Deployment, with programs of ours in the place of theirs."""

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
        """Start an init container; its mounts are folders of ours."""
        words = [
            word.replace("/weights/", f"{self.folder}/weights/").replace(
                "/sources/", f"{self.folder}/sources/"
            )
            for word in container["command"]
        ]
        return subprocess.Popen(words, env=self._environment | environment)

    def calls(self) -> list[str]:
        """Return how the programs were called."""
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


def test_what_is_complete_is_not_fetched_again(pod: Pod) -> None:
    """The second pod with the same cache finds it."""
    [container] = fetchers()

    assert [pod.start(container).wait() for _ in range(2)] == [0, 0]
    assert pod.calls() == [
        "download Qwen/Qwen2.5-0.5B-Instruct --local-dir /weights/Qwen-Qwen2.5-0.5B-Instruct"
    ]


def test_pods_that_share_a_cache_wait_for_each_other(pod: Pod) -> None:
    """One of them fetches."""
    [container] = fetchers(cacheURI="pvc://models")
    running = [pod.start(container) for _ in range(4)]

    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert len(pod.calls()) == 1


def test_an_attempt_that_broke_off_is_gone_on_with(pod: Pod) -> None:
    """It does not count as complete, and what it left is still there."""
    [container] = fetchers()
    pod.fails.touch()

    assert [pod.start(container).wait() for _ in range(2)] == [1, 0]
    assert len(pod.calls()) == 2
    assert sorted(path.name for path in pod.folder.glob("weights/*/*")) == ["model.safetensors", "part"]


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [({}, ""), ({"ENDPOINT": "http://minio:9000"}, " --endpoint-url http://minio:9000")],
)
def test_a_bucket_is_asked_at_its_endpoint(pod: Pod, environment: dict[str, str], endpoint: str) -> None:
    """`ENDPOINT` names it; without it, that of AWS."""
    [container] = fetchers(modelURI="s3://bucket/llama")

    assert pod.start(container, **environment).wait() == 0
    text = pod.log.read_text(encoding="utf-8").replace(str(pod.folder), "")
    assert text.startswith("s3 sync s3://bucket/llama /weights/bucket-llama-")
    assert text.rstrip().endswith(endpoint.strip())


def test_a_volume_is_copied_to_another_one(pod: Pod) -> None:
    """A disk of the node may be much faster."""
    source = pod.folder / "sources" / "claim" / "llama"
    source.mkdir(parents=True)
    (source / "model.safetensors").write_text("weights", encoding="utf-8")
    [container] = fetchers(modelURI="pvc://claim/llama", cacheURI="hostpath:///mnt/models")

    assert pod.start(container).wait() == 0
    [copied] = pod.folder.glob("weights/*/model.safetensors")
    assert copied.read_text(encoding="utf-8") == "weights"

    # A copy that was broken off is newer than its source.
    copied.write_text("wei", encoding="utf-8")
    copied.parent.with_name(f"{copied.parent.name}.complete").unlink()
    assert pod.start(container).wait() == 0
    assert copied.read_text(encoding="utf-8") == "weights"


def test_a_volume_is_used_where_it_lies() -> None:
    """Nothing is fetched, and the engine reads it there."""
    deployment = one(expand(model(backend(modelURI="pvc://claim/llama/8b"))).objects, "Deployment")
    words = engine_of(deployment)["command"]

    assert "initContainers" not in deployment["spec"]["template"]["spec"]
    assert words[words.index("--model") + 1] == "/sources/claim/llama/8b"
    assert {"name": "source-0", "mountPath": "/sources/claim", "readOnly": True} in engine_of(deployment)[
        "volumeMounts"
    ]


@contextmanager
def engine(answers: list[str]) -> Iterator[int]:
    """Serve one page of metrics after the other; the last one stays. Yields the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[0].encode())
            if len(answers) > 1:
                answers.pop(0)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

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
def test_an_engine_stops_when_nothing_is_in_work(busy: str) -> None:
    """It is asked until neither a running nor a waiting request is left."""
    answers = [busy, busy.translate(str.maketrans("123", "000"))]
    deployment = one(expand(model()).objects, "Deployment")
    words = engine_of(deployment)["lifecycle"]["preStop"]["exec"]["command"]
    with engine(answers) as port:
        command = [*words[:-2], f"http://127.0.0.1:{port}/metrics", "0"]
        environment = os.environ | {"http_proxy": "http://127.0.0.1:1"}  # it is for what fetches

        assert subprocess.run(command, check=False, timeout=60, env=environment).returncode == 0
    assert len(answers) == 1
