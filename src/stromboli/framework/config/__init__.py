"""Configuration: volcano-scheduler.conf, arguments, the registry of plugins and actions, compat switches."""
