"""The state of the cluster, read once, that the command is based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.schema.json import Json
from controller.certificates.former_claim import FormerClaim
from controller.commands.uninstall.installed import Found


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """Our changes in objects of others."""

    gated: tuple[Json, ...] = ()
    """Pods held by our scheduling gate."""
    costly: tuple[Json, ...] = ()
    """Pods with a deletion cost that we set."""
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
    """The state of the cluster at one time."""

    namespaces: tuple[str, ...]
    """Those with an installation: several if an earlier one was not removed, none if a right is missing."""
    found: tuple[Found, ...] = ()
    """Objects to delete, in the order of deletion."""
    webhooks: tuple[Found, ...] = ()
    leaders: tuple[str, ...] = ()
    """Our Leases that a process holds."""
    marked: Marked = field(default_factory=Marked)
    dependents: tuple[str, ...] = ()
    """Workloads whose new pods would not run without Stowplan, and why."""
    definitions: Mapping[str, Json] = field(default_factory=dict)
    """Our own definitions of our kinds, by name."""
    others: Mapping[str, Json] = field(default_factory=dict)
    """Definitions of our kinds by another owner, by name; those that a downgrade leaves are among them."""
    objects: Mapping[str, int] = field(default_factory=dict)
    """The number of objects of each kind by the name of its definition, whether or not that is ours."""
    annotated: Mapping[str, int] = field(default_factory=dict)
    """The number of objects whose annotation about the writer must go, by the name of their definition."""
    api_service: Json | None = None
    """The APIService of external metrics, if it is ours."""
    former: FormerClaim | None = None
    """The previous owner of external metrics, if it is known and its Service still exists."""
    strangers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The objects of others in each namespace that our manifests created."""
    denied: tuple[str, ...] = ()
