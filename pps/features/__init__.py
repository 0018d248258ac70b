"""What is built on the core, each loaded through its entry point.

Nothing below imports one of these.
"""
