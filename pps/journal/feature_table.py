"""The table of ``feature_rows``, a step of the migrations."""

from __future__ import annotations

# What perspectives keep of an item, see ``feature_rows``; version 0 is one that could not be made.
FEATURES = (
    """CREATE TABLE features (
        item TEXT NOT NULL,
        kind TEXT NOT NULL,
        perspective TEXT NOT NULL,
        version INTEGER NOT NULL,
        blob BLOB NOT NULL,
        PRIMARY KEY (item, perspective)
    ) WITHOUT ROWID""",
    "CREATE INDEX features_failed ON features (perspective) WHERE version = 0",
)
