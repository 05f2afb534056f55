"""The workers of a Model's backend: what one replica of it is made of.

Bounds on the length of text are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.core.resources import ResourceRequirements
from apiserver.kinds.meta import Int32
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Length, Range
from apiserver.schema.texts import NoWhitespace

Count = Annotated[Int32, Range(0, 1000000)]
"""A number of things that run, 0 included."""


@declaration()
class ModelWorker:
    """One kind of worker: what it runs, on what, and how many of it belong to one replica of the backend."""

    type: Literal["server", "prefill", "decode", "controller", "coordinator"] = "server"
    """What it does: `server` the whole work; `prefill` and `decode` their part of it where these are apart;
    `controller` and `coordinator` lead such parts for MindIE. Which may be there depends on the backend."""

    image: Maybe[Annotated[str, Length(maximum=512), NoWhitespace()]] = UNSET
    """Container image of the engine. A worker without one has nothing to run."""

    replicas: Maybe[Count] = UNSET
    """How many of it one replica of the backend has. Without it: 1. With 0 the backend cannot serve."""

    pods: Maybe[Count] = UNSET
    """How many pods, each on a node, make up one of it: more than 1 for a model too large for one node.
    Without it, and with 0: 1."""

    resources: Maybe[ResourceRequirements] = UNSET
    """What each pod requests and may use at most, accelerators among it."""

    affinity: Maybe[Affinity] = UNSET
    """Where the pods may run."""

    config: Maybe[JsonValue] = UNSET
    """Settings of the engine, as an object of any shape: each member is an argument of its command line, such
    as `max-model-len: 8192`. An empty text makes an argument without a value. It may be nested 100 levels
    deep."""
