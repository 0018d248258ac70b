"""Errors, times, ids, text and the values that modules exchange. No I/O here."""
