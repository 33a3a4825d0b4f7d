"""A program that reads rows by their keys until its input ends, and then says how long each read took.

    python -m tests.adversary.reader '{"host": "127.0.0.1", "port": 3306, "password": "…", "rows": 100}'
"""

from __future__ import annotations

import json
import sys
import threading
import time

import pymysql

PAUSE_S = 0.002


def main() -> None:
    order = json.loads(sys.argv[1])
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
    took_s: list[float] = []
    with (
        pymysql.connect(host=order["host"], port=order["port"], user="root", password=order["password"], database="d") as connection,
        connection.cursor() as cursor,
    ):
        while not ended.is_set():
            number = len(took_s) % order["rows"]
            began = time.perf_counter()
            cursor.execute(f"SELECT v FROM t WHERE id = {number}")
            assert cursor.fetchall() == ((f"v{number}",),)
            took_s.append(time.perf_counter() - began)
            ended.wait(PAUSE_S)
    print(json.dumps(took_s))


if __name__ == "__main__":
    main()
