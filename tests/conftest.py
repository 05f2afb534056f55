"""The Hypothesis profile of campaigns: many new examples of each property, without a time limit for one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("campaign", max_examples=1000, deadline=None)
