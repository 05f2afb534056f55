"""`stowplan uninstall`: removes an installation from a cluster, and its traces from objects of others.

uninstall       the command, and the parts of an installation: what to know about each, and its steps
definitions     the part with the definitions of our kinds and their objects
installed       the kinds that manifests install, in the order of removal, and how to read their objects
"""
