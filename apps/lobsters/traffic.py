"""Visitors of the site: `python -m apps.lobsters.traffic PORT DATABASE SCALE RATE`, RATE pages a second until the process is ended."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from contextlib import closing
from datetime import datetime
from random import Random

import pymysql

from apps.lobsters.pages import pages, run_page
from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.requests import requests

VISITORS = 4
PAUSE_S = 1.0


def visit(port: int, database: str, scale: float, rate: float, seed: int) -> None:
    """One visitor: page after page, at times drawn from a Poisson process. A connection that is lost is made again."""
    random, known = Random(seed), pages("natural")
    wanted = requests(scale, seed, datetime.now())
    while True:
        try:
            with closing(PlainConnection("127.0.0.1", port, database)) as connection:
                while True:
                    time.sleep(random.expovariate(rate))
                    page, request = next(wanted)
                    request["now"] = datetime.now().replace(microsecond=0)
                    with contextlib.suppress(pymysql.err.IntegrityError):  # somebody has the same short id
                        run_page(known[page], request, connection.execute)
        except pymysql.err.Error as error:
            print(f"visitor {seed}: {error}", file=sys.stderr)
            time.sleep(PAUSE_S)


def main() -> None:
    port, database, scale, rate = sys.argv[1:]
    threads = [
        threading.Thread(target=visit, args=(int(port), database, float(scale), float(rate) / VISITORS, time.time_ns() + number), daemon=True)
        for number in range(VISITORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
