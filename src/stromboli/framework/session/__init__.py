"""The session, which composes books, engine, plugins and statements for one cycle."""
