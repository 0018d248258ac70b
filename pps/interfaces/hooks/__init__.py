"""The server's side of the hooks: whose event it is, what is kept of it, what the agent is given."""
