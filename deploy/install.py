"""`pip install`, with one line of progress instead of a hundred: python deploy/install.py WHAT…

The line says what pip does at the moment and for how long. On a terminal it is written over itself; elsewhere each large download is a line.
What pip says is shown only if it fails. Needs nothing but Python, since it runs before anything is installed.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import threading
import time

LARGE = re.compile(r"\((\d{2,}(?:\.\d+)? MB|\d+(?:\.\d+)? GB)\)")
DOING = re.compile(r"^\s*(Collecting|Downloading|Using cached|Processing|Building wheel for|Installing collected packages)\b:? ?(.*)")
WORDS = {"Collecting": "looking for", "Downloading": "downloading", "Using cached": "taking", "Processing": "taking", "Building wheel for": "building"}
SHOWN_LINES = 40
WIDTH_MAX = 78


def read(pip: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert pip.stdout is not None
    for line in pip.stdout:
        lines.put(line)
    lines.put(None)


def described(line: str) -> str | None:
    found = DOING.match(line)
    if found is None:
        return None
    doing, what = found.groups()
    if doing == "Installing collected packages":
        count = what.count(",") + 1
        return f"installing {count} packages" if count > 1 else f"installing {what}"
    name = what.partition(" (from")[0].rsplit("/", 1)[-1]
    return f"{WORDS[doing]} {name}".split(" (pyproject")[0]


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off", *arguments]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=read, args=(pip, lines), daemon=True).start()
    said: list[str] = []
    doing, since, overwrites = "starting", time.monotonic(), sys.stdout.isatty()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            line = ""
        if line is None:
            break
        said += [line] if line else []
        if (now := described(line)) is not None:
            doing, since = now, time.monotonic()
            if not overwrites and LARGE.search(line):
                print(f"  {doing}", flush=True)
        if overwrites:
            seconds = int(time.monotonic() - since)
            print(f"\r\033[K  {doing[:WIDTH_MAX]}{f', {seconds} s' if seconds else ''}", end="", flush=True)
    if overwrites:
        print("\r\033[K", end="", flush=True)
    code = pip.wait()
    if code:
        print("".join(said[-SHOWN_LINES:]), end="", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
