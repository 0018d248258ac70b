"""The page shows the entity's clock and calendar, whatever zone the browser is in, and moves no date."""

from __future__ import annotations

import pytest

from tests.chromium import Chromium
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium
ZONES = (
    "America/Los_Angeles",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
)
_TOLD = {
    "content": "Wren was born, and moved in the last minute of a day.",
    "occurred_at": "2026-03-10T23:59",
    "facts": [
        {"subject": "Wren", "relation": "BORN_ON", "object": "day", "text": "Born.", "valid_at": "2026-03-10"},
        {"subject": "Wren", "relation": "WAS_IN", "object": "Rome", "text": "In Rome.", "valid_at": "2026-03", "invalid_at": "2026-03-29"},
        {"subject": "Wren", "relation": "MOVED_TO", "object": "Oslo", "text": "Moved.", "valid_at": "2026-03-29T23:59"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("browser_zone", ["Pacific/Honolulu", "Pacific/Auckland"])
def test_times_are_the_entitys_and_dates_stay(
    served: Served, browser: Chromium, zone: str, browser_zone: str
) -> None:
    name = zone.rpartition("/")[2].lower()
    served.link.call("entity_create", "", {"name": name, "time_zone": zone})
    served.link.call("remember", name, _TOLD)
    with browser.window(served, name, timezone_id=browser_zone) as window:
        window.go("#/time", until="li.ended")
        held = window.text()
        assert "2026-03-10 – now" in held, "a date is that date"
        assert "2026-03 – 2026-03-29" in held
        assert "2026-03-29 – now" in held, (
            "the day on the person's clock, in the night of a change too"
        )
        window.go("#/turns", until="time")
        assert "2026-03-10 23:59" in window.text()
        stated = window.page.get_attribute("main time", "title")
        assert stated == f"2026-03-10 23:59:00 {zone}"
        window.go("#/time?since=2026-03-29&until=2026-03-30", until="section.changes li")
        changed = window.text()
        assert "What changed from 2026-03-29 to 2026-03-30" in changed
        began, ended, replaced = (
            one.inner_text() for one in window.page.query_selector_all("section.changes")
        )
        told = began + ended + replaced
        assert "Moved." in told
        assert "In Rome." in told
        assert "Born." not in told
        window.is_well()
