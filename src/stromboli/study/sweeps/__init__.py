"""Many simulations: configurations, seeds, loads and traces, on many processes or machines."""
