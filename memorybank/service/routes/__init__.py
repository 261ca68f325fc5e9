"""The routes, a file for each kind of thing. Each is a few lines: what it takes, one call, what it gives."""
