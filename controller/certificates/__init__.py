"""Serving certificates of all processes.

`certificates` applies what `authority` decides, and records who served external metrics before.
"""
