"""`stowplan dashboard`: a page about the fleet of a live cluster, served on loopback.

run        the entry point
server     the HTTP server: pages, and the state that they show
access     who may see the page
history    what was seen of each model over the last hours
what_if    plans for a changed cluster or another demand. Pure
page       the pages, rendered by the server: no script
"""
