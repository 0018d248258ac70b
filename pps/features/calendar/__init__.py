"""Calendars: the events that take hours of the days, and how full the days are."""
