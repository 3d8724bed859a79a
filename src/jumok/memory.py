"""How much memory there is, asked before something needs more than that."""

import os
import re
import resource
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available_memory() -> int:
    """Bytes that this process may still use: what the machine can give, within the limits of container and user."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    if found := re.search(r"^MemAvailable:\s+(\d+) kB", _text(_MEMINFO), re.MULTILINE):
        limits.append(int(found[1]) * 1024)
    limits += [int(text) for text in map(_text, _CONTAINER) if text.strip().isdecimal()]  # "max" is no limit
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min([*limits, *([allowed] if allowed != resource.RLIM_INFINITY else [])])


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        return ""


def gibibytes(n: int) -> str:
    return f"{n / 2**30:,.1f} GiB"
