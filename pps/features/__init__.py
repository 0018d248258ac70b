"""What is built on the core, each loaded through its entry point; nothing below imports one of these."""
