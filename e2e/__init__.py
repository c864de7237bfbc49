"""Stories on real servers: the embedded one and a real kube-apiserver.  `make test-e2e` runs them."""
