"""What one entity can be asked to do: one table, translated by every surface."""
