"""What the plugins that give queues amounts of resources have in common: accounts, admission, tried moves, texts."""
