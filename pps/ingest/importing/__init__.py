"""Taking in what other programs kept: each format is read into the messages that ``remember`` takes."""

from pps.ingest.importing.formats import FORMATS, read_lines
from pps.ingest.importing.run import Imported, Into, Wanted, import_files

__all__ = ["FORMATS", "Imported", "Into", "Wanted", "import_files", "read_lines"]
