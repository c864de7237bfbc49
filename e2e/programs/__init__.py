"""Programs that stories need and that are built or fetched once."""
