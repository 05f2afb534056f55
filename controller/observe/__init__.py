"""Reads the world: I/O comes in here, and one frozen snapshot goes out.

`scraping` and `prometheus` ask for engine metrics, `readings` and `engines` make samples of the answers.
`accelerators`, `pods`, `inventory`, `policies`, `orders`, `scheduling`, `quotas`, `karpenter` and `variants`
translate raw objects, `idleness` remembers who was busy, and `gather` puts all of it together.
"""
