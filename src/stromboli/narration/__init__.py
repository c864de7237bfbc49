"""What the scheduler reports: the catalogue of log lines and figures, and the observers that receive them."""
