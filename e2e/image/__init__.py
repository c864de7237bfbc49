"""The container image: what is in it, and its programs as pods of the chart's Deployments."""
