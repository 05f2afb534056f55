"""Reads the world: I/O comes in here, and one frozen snapshot goes out.

`scraping` and `prometheus` ask for engine metrics, `readings` and `engines` make samples of the answers.
`accelerators`, `pods`, `inventory`, `policies` and `variants` translate raw objects, and `gather` puts all of
it together.
"""
