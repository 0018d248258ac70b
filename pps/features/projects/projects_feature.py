"""The feature ``projects``: memories of projects by folder, and tasks for agents there."""

from __future__ import annotations

from pps.operations.feature import Feature

FEATURE = Feature(
    name="projects",
    summary=(
        "Knowledge graphs of projects, each named by its folder, and tasks that agents hand out "
        "there."
    ),
    modules=(
        "pps.features.projects.project_tools",
        "pps.features.projects.agent_tasks",
        "pps.features.projects.project_access",
    ),
    provides={"projects": "pps.features.projects.projects:Projects"},
)
