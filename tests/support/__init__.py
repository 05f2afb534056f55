"""Shared by tests in several folders: builders, stages, stand-ins, and data about seeded faults."""
