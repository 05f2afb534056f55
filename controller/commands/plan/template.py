"""Self-contained HTML pages from templates, with all values escaped."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from controller.commands.plan.terminal import harmless


def render(package: str, template: str, **values: object) -> str:
    """Return a page from a package's template, which can include those of plans and of charts."""
    shared = ("controller.commands.plan", "controller.commands.simulate")
    loader = ChoiceLoader([PackageLoader(name) for name in (package, *shared)])
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
    """Return markup unchanged, and other values as text without control characters."""
    return value if hasattr(value, "__html__") else "\n".join(map(harmless, str(value).split("\n")))
