#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_verses.py [FOLDER]: writes the 31,102 verses of the King James Bible there, or here,
from Debian's bible-kjv, for the recipes bible_bert, bible_books and bible_parts:

    verses.txt        a verse a line
    verses.tsv        the book of each verse, and the verse
    parts/train.tsv   each tenth verse with the part of the Bible that its book is in
    parts/dev.tsv     likewise the verses that bible_books does not train on"""
import os
import subprocess
import sys

BOOKS = (("law", 5), ("history", 12), ("poetry", 5), ("prophets", 17), ("gospels", 4),
         ("acts", 1), ("letters", 21), ("revelation", 1))
parts = [name for name, n in BOOKS for _ in range(n)]
folder = sys.argv[1] if len(sys.argv) > 1 else "."
os.makedirs(os.path.join(folder, "parts"), exist_ok=True)
text = subprocess.run(["bible", "-f", "-p", "/usr/lib", "gen1:1-rev22:21"], check=True,
                      capture_output=True, text=True).stdout


def write(path, rows, head=None):
    with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
        f.writelines("\t".join(row) + "\n" for row in ([head] if head else []) + rows)


verses, books, of_parts, known = [], [], [], []
for line in text.splitlines():
    place, verse = line.split(" ", 1)  # "1Co13:1 Though I speak ..."
    book = place.split(":")[0].rstrip("0123456789")
    if book not in known:
        known.append(book)
    verses.append((verse,))
    books.append((book, verse))
    of_parts.append((parts[len(known) - 1], verse))
write("verses.txt", verses)
write("verses.tsv", books, ("book", "verse"))
write("parts/train.tsv", of_parts[::10], ("part", "verse"))
write("parts/dev.tsv", of_parts[9::10], ("part", "verse"))
