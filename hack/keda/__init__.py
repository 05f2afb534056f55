"""KEDA's operator and metrics adapter on a control plane.

`programs` builds them from KEDA's Go module, and `running` installs and runs them.
"""
