"""Starts one program, waits for it, and prints its wall time, processor time, memory and exit code as JSON.

A program of its own, because Linux gives a child the memory peak of the process that started it: so this one is small
(`python -I -S launch.py PROGRAM …`, standard library only). What the program prints is thrown away; of its errors the
end is kept.
"""

import json
import os
import sys
import tempfile
import time


def launch(command: list[str]) -> dict[str, object]:
    """Run the command and return what was measured."""
    with tempfile.TemporaryFile() as errors:
        files = [
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        begun = time.perf_counter()
        child = os.posix_spawn(command[0], command, os.environ, file_actions=files)
        _, status, used = os.wait4(child, 0)
        wall = time.perf_counter() - begun
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024),
        "errors": said[-500:],
    }


if __name__ == "__main__":
    print(json.dumps(launch(sys.argv[1:])))
