"""The actions: one module each, plus the victim search they share; none imports a plugin."""
