"""Hooks of the documents' site: a link to a file beside ``docs`` leads to the repository, since the site has it not."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: object) -> str:
    """Return a page's text with the links that leave ``docs`` led to the repository's main branch."""
    folder = posixpath.dirname(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, found["path"]))
        if path.startswith("docs/"):
            return found[0]
        return f"]({config.repo_url}/blob/main/{path}{found['anchor'] or ''})"

    return _LINK.sub(led, markdown)
