"""Reports of sweeps: one HTML file each, with plots, that a browser shows without any network."""
