"""Measures what a scheduling cycle costs on clusters that anybody can rebuild from a formula."""
