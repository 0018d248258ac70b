"""The command line.

Imports what a command needs when it runs, so that ``pps --help`` is instant.
"""
