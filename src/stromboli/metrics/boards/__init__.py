"""What people see of the metrics: alerts for Prometheus, dashboards for Grafana.  Tables first, documents from them."""
