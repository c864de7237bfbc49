"""Printing: the tables and columns that kubectl shows."""
