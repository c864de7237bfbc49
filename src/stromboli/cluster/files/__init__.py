"""Objects from files: YAML documents, scenarios and usage records."""
