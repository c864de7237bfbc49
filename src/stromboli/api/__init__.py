"""Our kinds, declared once: fields with their documentation, rules and defaults, phases, and where each stands."""
