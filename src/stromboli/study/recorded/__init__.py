"""What a record says of the past: its jobs, and the trace that they make for the simulator."""
