"""What a router can be asked to do: projects by their paths, and the tasks of agents that work in them."""
