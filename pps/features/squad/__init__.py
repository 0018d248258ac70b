"""Squads: members that each have a memory, and the pool of what they chose to share."""
