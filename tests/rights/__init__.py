"""Removal of permissions, one at a time, from a running installation: `make rights`.

`rules` reads the permissions in the manifests, and `needs` says what needs each of them. `stage` runs an
installation of all parts, with objects that make it use every permission.
"""
