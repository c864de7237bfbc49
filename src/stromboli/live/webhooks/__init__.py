"""The webhook server: the rules of admission (:mod:`stromboli.crds.admission`) asked over TLS by API servers."""
