"""`stowplan uninstall`: removes an installation from a cluster, and its traces from objects of others.

installed              the kinds that manifests install, in the order of removal
snapshot, gather       the state of the cluster, read once
namespace_content      objects of others in our namespace
checks                 preconditions of the removal, and what stays
steps                  the remaining steps, from the state: an interrupted run is simply run again
removal, cleaning      execution of the steps, on our own objects and on those of others
uninstall              the entry point
"""
