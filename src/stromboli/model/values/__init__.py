"""Small values: times, durations, patterns and redaction."""
