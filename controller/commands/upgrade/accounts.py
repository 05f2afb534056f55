"""The effect of a downgrade on each object."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.kinds.llmd.shapes import Shape, Shaped, in_shape, without_annotation
from apiserver.schema.json import Json
from controller.commands.upgrade.comparison import difference
from controller.commands.upgrade.status_to_come import with_announced_status, without_announcement


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The effect on one object: what its new shape cannot hold, and what is made up for it."""

    namespace: str
    name: str
    is_reshaped: bool
    """Whether anything but our annotations must change."""
    is_annotated: bool
    lost: tuple[str, ...]
    made_up: tuple[str, ...]

    def as_json(self) -> Json:
        """Return the account as an entry of `changes`."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "lost": list(self.lost),
            "madeUp": list(self.made_up),
        }


def without_annotations(item: Json) -> Json:
    """Return an object without the annotations of conversion and of an interrupted run."""
    return without_announcement(without_annotation(item))


def account(item: Json, shape: Shape) -> Account:
    """Return the effect of giving an object a shape."""
    shaped = shaped_anew(item, shape)
    metadata = item["metadata"]
    bare = without_annotations(item)
    return Account(
        namespace=metadata["namespace"],
        name=metadata["name"],
        is_reshaped=bool(difference(shaped.value, bare)),
        is_annotated=bool(difference(bare, item)),
        lost=tuple(shaped.lost),
        made_up=tuple(shaped.made_up),
    )


def shaped_anew(item: Json, shape: Shape) -> Shaped:
    """Return an object in a shape, continuing from what an interrupted run announced."""
    return in_shape(with_announced_status(item, shape), shape)
