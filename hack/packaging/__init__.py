"""What a release is made of, out of `manifests` and the lock files: one-file YAML, a Helm chart, an SBOM.

Nothing of it is written twice. Overlays are rendered by kubectl; the chart's templates are read off
differences between such renderings, its values and their schema off one declaration.
"""
