{{/* Name a ConfigMap by its content, as kustomize does: a change rolls the pods. */}}
{{- define "stowplan.config" -}}
{{- $data := dict "config.yaml" (toYaml .config) -}}
{{- $sum := dict "kind" "ConfigMap" "name" "" "data" $data | toJson | sha256sum | trunc 10 -}}
{{- $sum = $sum | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" -}}
{{ .name }}-{{ $sum | replace "e" "t" }}
{{- end }}

{{/* The labels of an object as JSON: its own, then those of every chart, then those of the user. */}}
{{- define "stowplan.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 -}}
{{- $labels := dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/name" .root.Chart.Name -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .root.Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" .root.Chart.Name -}}
{{- merge (dict) .own $labels .extra .root.Values.commonLabels | toJson -}}
{{- end }}

{{/* A map of documents as JSON, with each document as a text. */}}
{{- define "stowplan.texts" -}}
{{- $texts := dict -}}
{{- range $key, $document := . }}{{ $_ := set $texts $key (toJson $document) }}{{ end -}}
{{- toJson $texts -}}
{{- end }}

{{/* The reference of an image as JSON. */}}
{{- define "stowplan.image" -}}
{{- $version := ternary (printf "@%s" .digest) (printf ":%s" .tag) (ne .digest "") | trimSuffix ":" -}}
{{- toJson (print .repository $version) -}}
{{- end }}

{{/* Topology spread constraints as JSON, which select the pods with some labels, of one revision. */}}
{{- define "stowplan.spread" -}}
{{- $constraints := list -}}
{{- range .constraints -}}
{{- $rest := dict "labelSelector" (dict "matchLabels" $.labels) "matchLabelKeys" (list "pod-template-hash") -}}
{{- $constraints = append $constraints (merge (dict) . $rest) -}}
{{- end -}}
{{- toJson $constraints -}}
{{- end }}
