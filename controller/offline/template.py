"""Pages made from templates: one file that needs nothing else, and whatever a name holds stays text."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from controller.offline.terminal import harmless


def rendered(package: str, template: str, **values: object) -> str:
    """Return a page from the template of a package; those of this package can be included in it."""
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("controller.offline")])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values)


def _harmless(value: object) -> object:
    """Return a value as it is written: markup as it is, text without what hides in a line."""
    return value if hasattr(value, "__html__") else "\n".join(map(harmless, str(value).split("\n")))
