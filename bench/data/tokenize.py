#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's tokenizers beside bench/data/tokenize: the same file by the same
tokenizer, on one thread each, one after the other; are the ids the same?

    python3 bench/data/tokenize.py --bench build/bench/data/tokenize TOKENIZER FILE...

TOKENIZER is a tokenizer.json. Needs the package tokenizers."""
import argparse
import json
import os
import subprocess
import tempfile
import time
from array import array

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers  # noqa: E402


LINES = 20000  # in one call: what Python adds to each line is left out


def peer(tokenizer, lines, seconds):
    """Ids of all lines, and bytes a second of the best round."""
    ids, best, begun = array("i"), None, time.process_time()
    while best is None or time.process_time() - begun < seconds:
        spent = 0
        for at in range(0, len(lines), LINES):
            some = lines[at:at + LINES]
            start = time.process_time()
            encoded = tokenizer.encode_batch_fast(some, add_special_tokens=False)
            spent += time.process_time() - start
            if best is None:
                for e in encoded:
                    ids.extend(e.ids)
        best = spent if best is None else min(best, spent)
    return ids, sum(len(line.encode()) for line in lines) / best


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("tokenizer")
    args.add_argument("files", nargs="+")
    args.add_argument("--bench", default="bench/data/tokenize")
    args.add_argument("--seconds", type=float, default=3)
    args = args.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(args.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for path in args.files:
        with open(path, newline="", encoding="utf-8") as f:
            text = f.read()
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        with tempfile.NamedTemporaryFile() as out:
            said = subprocess.run(
                [args.bench, args.tokenizer, path, str(args.seconds), out.name],
                check=True, capture_output=True, text=True).stdout
            ours = array("i")
            ours.frombytes(open(out.name, "rb").read())
        theirs, speed = peer(tokenizer, [line for line in lines if line], args.seconds)
        row = json.loads(said)
        print(json.dumps({
            "file": os.path.basename(path), "bytes": row["bytes"], "tokens": len(theirs),
            "same": ours == theirs, "etude MB/s": row["MB/s"],
            "tokenizers MB/s": round(speed / 1e6, 2),
            "ratio": round(row["MB/s"] * 1e6 / speed, 2),
            "tokenizers": tokenizers.__version__}))


main()
