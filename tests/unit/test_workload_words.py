"""What the workload recommends."""

from datetime import date

from pps.records.workload import DayLoad, TaskLoad, recommended

_DAY = date(2026, 11, 28)


def test_only_what_a_day_has_of_tasks_can_be_moved() -> None:
    calendar = DayLoad(_DAY, 4, 0, 4, 100, "red")
    both = DayLoad(date(2026, 11, 30), 8, 4, 8, 150, "red")
    task = TaskLoad("id", "Write", "todo", 4, both.day)
    told = recommended([calendar, both], [task], {"without_date": 1}, (), 95.5, ["“Tidy up”"])
    assert told == (
        "2026-11-30 is at 150 %: move 4.0 h away; its largest task is “Write” (4 h)",
        "2026-11-28 is at 100 % by its calendar alone: plan no task there",
        "The whole time is nearly full: put off or drop what serves no goal, before anything new is taken on",
        "1 open task has no due_date, not counted: “Tidy up”",
    )
