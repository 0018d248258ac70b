"""Embedder, reranker and extractor behind small protocols.

Adapters to Graphiti live in isolation/.
"""
