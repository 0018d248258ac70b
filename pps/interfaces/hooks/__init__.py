"""The server's side of the hooks of coding agents."""
