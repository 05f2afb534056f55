"""The files of a release, generated from `manifests` and lock files: single-file YAML, a Helm chart, an SBOM.

Nothing is written twice. kubectl renders the overlays. The chart's templates are derived from differences
between such renderings, its values and their schema from one declaration.

- all files: `release`; renderings: `rendering`; the chart: `chart`, `substitution`, `templating`, and its
  static files in `templates`; its values: `values`, `pod_values`, `values_files`
- `sbom`, and the `programs` needed
"""
