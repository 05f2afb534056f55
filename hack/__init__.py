"""One small program for each verb: set up, control plane, demo, generate, verify, bench."""
