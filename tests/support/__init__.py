"""Shared by tests in several folders: builders, stages, stand-ins, and the promises of reference pages."""
