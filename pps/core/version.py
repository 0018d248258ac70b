"""The version of PPS; ``pyproject.toml`` says the same."""

__version__ = "0.3.0"
