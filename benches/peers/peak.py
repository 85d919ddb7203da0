"""Runs a command and prints the bytes that its process has held at once, at the most, as a last line.

Usage: python -I -S peak.py COMMAND...

A process of its own, and a small one: the kernel counts for a new process what the one that started it held until
then, so that a process with NumPy in it would measure itself.
"""

import os
import subprocess
import sys

if __name__ == "__main__":
    child = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
    _, status, usage = os.wait4(child.pid, 0)
    print(usage.ru_maxrss * 1024)
    sys.exit(os.waitstatus_to_exitcode(status))
