"""Objects of an API server that scheduling keeps as they are."""
