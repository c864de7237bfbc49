"""Measures what a scheduling cycle costs on clusters that can be rebuilt from a formula."""
