"""The registry of entities, their folders, the tokens that open them, and the project folders mapped to them."""
