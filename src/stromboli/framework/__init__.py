"""The machine: extension points and how they merge, plugins, configuration, session, statement and plan."""
