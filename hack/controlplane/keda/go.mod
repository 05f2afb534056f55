// Pins KEDA, for the tests with its operator and its metrics adapter. Its own module pins what it is built with.
module stowplan.dev/hack/controlplane/keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.20.1 // indirect
