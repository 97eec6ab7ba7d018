"""Prints what an SQLite database answers, a line a row: sqlite_query.py FILE SQL...  (the program
sqlite3 need not be there)."""
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
for sql in sys.argv[2:]:
    for row in db.execute(sql):
        print(*row, sep="|")
