"""The composition root: settings → registry → one Memory an entity. Owns every lifetime."""

from __future__ import annotations

from pps.app.hosting import App

__all__ = ["App"]
