"""What breaks things: broken files, broken requests, seeded and counted (``make chaos``)."""
