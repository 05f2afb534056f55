// Pins the custom resource definitions of other projects. They are read out of the modules; nothing is built.
module stowplan.dev/hack/controlplane/definitions

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	github.com/volcano-sh/kthena v1.0.0
	sigs.k8s.io/gateway-api v1.6.3
	sigs.k8s.io/gateway-api-inference-extension v1.5.0
	sigs.k8s.io/lws v0.8.0
)
