"""A colour for each variant, with distinct neighbours and enough contrast for white letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_GOLDEN_DEGREES: Final = 137.508
_SATURATION: Final = 0.52
_CONTRASTS: Final = (4.7, 5.5, 6.4)
"""Contrast ratios with white, in turn. WCAG requires 4.5; above 7, blocks would merge with a dark page."""

_WHITE: Final = 1.05
_SHARES: Final = (0.2126, 0.7152, 0.0722)
_STRAIGHT_BELOW: Final = 0.04045
"""Threshold below which the sRGB curve is linear."""


def colours(codes: Mapping[tuple[str, str], str]) -> Mapping[str, str]:
    """Return a colour for each code."""
    return {code: _colour(position) for position, code in enumerate(codes.values())}


def contrast_with_white(hue_degrees: float, saturation: float, lightness: float) -> float:
    """Return the WCAG contrast ratio between a colour and white."""
    return _WHITE / (_luminance(hue_degrees, saturation, lightness) + 0.05)


def _colour(position: int) -> str:
    hue = round(position * _GOLDEN_DEGREES % 360)
    wanted = _CONTRASTS[position % len(_CONTRASTS)]
    lightness = next(
        percent
        for percent in range(60, 0, -1)
        if contrast_with_white(hue, _SATURATION, percent / 100) >= wanted
    )
    return f"hsl({hue} {_SATURATION:.0%} {lightness}%)"


def _luminance(hue_degrees: float, saturation: float, lightness: float) -> float:
    spread = saturation * min(lightness, 1 - lightness)
    offsets = ((offset + hue_degrees / 30) % 12 for offset in (0, 8, 4))
    channels = (lightness - spread * max(-1, min(at - 3, 9 - at, 1)) for at in offsets)
    return sum(share * _linear(channel) for share, channel in zip(_SHARES, channels, strict=True))


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= _STRAIGHT_BELOW else ((channel + 0.055) / 1.055) ** 2.4
