"""What an installation consists of: written once, printed as manifests and as a chart of Helm."""
