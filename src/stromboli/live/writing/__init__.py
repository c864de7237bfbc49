"""Writing decisions to the API server: binds, evictions and status updates."""
