"""The container image: made without a daemon, unpacked, and looked through."""
