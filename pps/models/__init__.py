"""Embedder, reranker and extractor behind small protocols; adapters to Graphiti live in isolation/."""
