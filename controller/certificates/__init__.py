"""Serving certificates of all processes.

`certificates` applies what `authority` decides, and `former_claim` records who served external metrics
before.
"""
