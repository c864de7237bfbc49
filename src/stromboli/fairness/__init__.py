"""Pure arithmetic of fair sharing over arrays: water filling, dominant share, queue trees."""
