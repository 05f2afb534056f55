"""`stowplan uninstall`: an installation is taken out of a cluster, and out of objects of others.

installed              what manifests install, in the order in which it goes
snapshot, gather       what is there, read once; namespace_content: what else is in our namespace
checks                 what must be in order first, and what stays
steps                  what is left to do, from what is there: so a run that was cut off is simply run again
removal, cleaning      doing it: our own objects, and what we wrote into those of others
uninstall              the verb
"""
