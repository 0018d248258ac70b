"""Projects: knowledge graphs of folders behind a router, and tasks that agents hand out there."""
