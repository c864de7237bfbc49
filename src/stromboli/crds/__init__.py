"""Our kinds."""
