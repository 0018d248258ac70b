"""Import of other programs' files: each format is read into messages for ``remember``."""
