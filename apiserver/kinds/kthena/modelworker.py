"""The workers of a Model's backend, which make up one replica of it.

Length limits of text are ours.
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
"""A count of replicas or pods, which may be 0."""


@declaration()
class ModelWorker:
    """A type of worker: what it runs, its resources, and its count in one replica of the backend."""

    type: Literal["server", "prefill", "decode", "controller", "coordinator"] = "server"
    """The role of the worker. `server` does all the work. `prefill` and `decode` each do one part of it in a
    disaggregated backend. `controller` and `coordinator` manage these parts for MindIE. The type of the
    backend determines which roles are allowed."""

    image: Maybe[Annotated[str, Length(maximum=512), NoWhitespace()]] = UNSET
    """The container image of the engine. A worker without an image cannot run."""

    replicas: Maybe[Count] = UNSET
    """The number of these workers in one replica of the backend. Defaults to 1. With 0 the backend cannot
    serve."""

    pods: Maybe[Count] = UNSET
    """The number of pods, each on its own node, of one worker. More than 1 is for a model that is too large
    for one node. Unset and 0 mean 1."""

    resources: Maybe[ResourceRequirements] = UNSET
    """The compute resources of each pod, including accelerators."""

    affinity: Maybe[Affinity] = UNSET
    """The scheduling constraints of the pods."""

    config: Maybe[JsonValue] = UNSET
    """Engine settings, as an object of any shape. Each member is a command line argument, such as
    `max-model-len: 8192`. An empty string makes an argument without a value. Nesting is limited to 100
    levels."""
