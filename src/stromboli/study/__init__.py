"""What records tell: the recorded cycles run once more, with the same or another configuration."""
