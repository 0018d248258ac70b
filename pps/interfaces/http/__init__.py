"""The one server: its routes, who may use them, and its life."""
