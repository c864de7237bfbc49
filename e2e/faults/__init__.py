"""Stories of faults: processes that end, connections that break."""
