"""Records of schedulers: what changed their states, in files that are read again bit by bit."""
