"""Running the controllers on a live cluster."""
