"""``stromboli migrate``: what changes when Stromboli takes the place of a scheduler that runs."""
