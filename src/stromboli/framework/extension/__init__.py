"""The extension interface: points, how answers merge, hooks, plugins and actions."""
