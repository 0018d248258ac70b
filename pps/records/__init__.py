"""Records of typed kinds: storing, moving, relating, listing, ranking and queries.

Kinds are data (`core.kinds`).
"""
