"""Pods as local processes: ``stromboli up --pods real``."""
