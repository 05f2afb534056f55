"""Read the cluster: I/O happens here, and the output is one frozen snapshot.

`scraping` and `prometheus` fetch engine metrics; `readings` and `engines` turn the responses into samples.
`accelerators`, `pods`, `inventory`, `policies`, `orders`, `scheduling`, `quotas`, `karpenter` and `variants`
translate Kubernetes objects, `idleness` tracks the last activity of models, and `gather` combines all of it.
"""
