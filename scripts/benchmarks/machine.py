"""What a figure was taken on, and what it cost: the processor, memory in use, bytes on the disk."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from pps.core.footprint import cores

MIB = 1024 * 1024


def machine() -> dict[str, object]:
    """Return cores, memory, the processor's name and the load of the last minute; nothing that names a host."""
    return {
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3, 1),
        "processor": _processor(),
        "python": platform.python_version(),
        "load_1_min": round(os.getloadavg()[0], 2),
    }


def resident_mib() -> float:
    """Return the memory that this process holds, in MiB; 0 where the system does not say."""
    return _status("VmRSS")


def peak_mib() -> float:
    """Return the most memory that this process ever held, in MiB; 0 where the system does not say."""
    return _status("VmHWM")


def disk_bytes(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _status(field: str) -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    line = next((line for line in status.read_text().splitlines() if line.startswith(field)), "")
    return round(int(line.split()[1]) / 1024, 1) if line else 0.0
