"""Proof of reservations: keys, signatures and the permissions around them."""
