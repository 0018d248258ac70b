"""The registry of entities, their folders, their tokens, and the project folders mapped to them."""
