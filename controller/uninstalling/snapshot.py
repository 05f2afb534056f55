"""What was found in the cluster, read once: all that the verb decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.schema.json import Json
from controller.reconcilers.former_claim import FormerClaim
from controller.uninstalling.installed import Found


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """What of ours is in objects of others."""

    gated: tuple[Json, ...] = ()
    """Pods that wait for our scheduling gate."""
    costly: tuple[Json, ...] = ()
    """Pods with the deletion cost that we wrote."""
    closed: tuple[str, ...] = ()
    """Nodes with our taint."""

    def __bool__(self) -> bool:
        return bool(self.gated or self.costly or self.closed)

    def __str__(self) -> str:
        counts = (
            (len(self.gated), "gates of pods"),
            (len(self.costly), "deletion costs of pods"),
            (len(self.closed), "taints of nodes"),
        )
        return ", ".join(f"{what}: {count}" for count, what in counts if count) or "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One look at the cluster."""

    namespace: str
    found: tuple[Found, ...] = ()
    """What is deleted as it is, in the order in which it goes."""
    webhooks: tuple[Found, ...] = ()
    leaders: tuple[str, ...] = ()
    """Leases of ours that a process holds."""
    marked: Marked = field(default_factory=Marked)
    dependents: tuple[str, ...] = ()
    """Workloads whose new pods would not run without us, and why."""
    definitions: Mapping[str, Json] = field(default_factory=dict)
    """Those of our kinds that carry our label, by name."""
    objects: Mapping[str, int] = field(default_factory=dict)
    """How many objects there are of each kind, by the name of its definition, whosever that is."""
    annotated: int = 0
    """Bindings in which our webhooks noted who wrote them."""
    api_service: Json | None = None
    """The claim to external metrics, if it is ours."""
    former: FormerClaim | None = None
    """Who had external metrics before, if that is known and its Service is still there."""
    is_namespace_ours: bool = False
    """Whether manifests of ours made the namespace."""
    strangers: tuple[str, ...] = ()
    """What else is in it."""
    denied: tuple[str, ...] = ()
