"""The files of a release, generated from `manifests` and lock files: single-file YAML, a Helm chart, an SBOM.

Nothing is written twice. kubectl renders the overlays. The chart's templates are derived from differences
between such renderings, its values and their schema from one declaration.

- all files: `release`; renderings: `rendering`; the chart: `chart`, `values`, `templating`
- `sbom`, and the `programs` needed
"""
