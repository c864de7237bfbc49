"""Rules of admission as ValidatingAdmissionPolicies, which an API server evaluates by itself."""
