"""Records of typed kinds: kept, moved, related, listed, ranked and asked.

Kinds are data (`core.kinds`).
"""
