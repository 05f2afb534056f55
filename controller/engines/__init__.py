"""Metrics of inference engines: all I/O of observation.

`scraping`, in `turns`, and `prometheus` fetch metrics; `readings` and `records` turn the responses into
samples.

- fetching: `endpoints`, `credentials`, `bounded` bodies, `causes` of failures; `prometheus_jobs` that may be
  trusted
- parsing: `exposition`, `series` and their `origins`, the `metrics` of each kind of engine, `foreign` engines
- `idleness` tracks the last activity of models
"""
