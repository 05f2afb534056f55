"""Metrics of inference engines: all I/O of observation, and the pure parsing of what it fetches.

`scraping`, in `turns`, and `prometheus` fetch metrics; `readings` and `records` turn the responses into
samples, and track the last activity of models.

- fetching: `endpoints`, `requests`, `prometheus_responses`
- the past: `prometheus_history`, and step times from it: `fitting`
- parsing: the series of an `exposition`, the `metrics` of each kind of engine
"""
