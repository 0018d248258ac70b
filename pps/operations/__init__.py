"""The table of operations, and carrying them out."""
