"""Commands that look at records, and at traces in virtual time."""
