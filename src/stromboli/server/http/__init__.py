"""HTTP: connections, bodies, authentication, routes and discovery."""
