"""The composition root: settings → registry → one Memory per entity. It owns all lifetimes."""

from __future__ import annotations

from pps.app.hosting import App

__all__ = ["App"]
