"""Taking in what other programs kept: each format is read into the messages that ``remember`` takes."""
