#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A viewer of a run, written from etude-events(7) alone: pyzmq and msgpack.

    viewer.py $XDG_RUNTIME_DIR/etude/brisk-otter.sock [RECORDS [OPERATION [KEY] [VALUE]]]

prints the records of a run as they come, a line each, and ends after RECORDS of them or
with the run. With an operation it first gives that command, prints what came of it, and
ends no sooner (the record of a command may come before the answer):
pause; stop; set optimizer.lr 0.05; algo mixup off; loglevel debug; annotate TEXT.
The packages are python3-zmq and python3-msgpack.
"""
import os
import sys
import time

import msgpack
import zmq

CREDIT = 256
MAJOR, MINOR, KIND, RUN, INCARNATION, HSEQ, RANK, RSEQ, T_MONO, BODY = range(10)
TALK = ("WELCOME", "SNAP_BEGIN", "RECEIVED", "APPLIED", "REJECTED", "EXPIRED", "REFUSE", "BYE")
KEYS = ("name", "role", "s", "bytes", "step", "rev", "code", "text")


class Viewer:
    def __init__(self, path):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect("ipc://" + path)
        self.run, self.incarnation = bytes(16), 0
        self.taken = 0  # messages since credit was given
        self.printed = 0

    def send(self, kind, **body):
        frame = [1, 0, kind, self.run, self.incarnation, 0, 0, 0, time.monotonic_ns(), body]
        self.socket.send(msgpack.packb(frame, use_bin_type=True), zmq.DONTWAIT)

    def receive(self):
        """The next frame that this version knows how to read; None: nothing for a second."""
        while self.socket.poll(1000):
            f = msgpack.unpackb(self.socket.recv(), raw=False, unicode_errors="replace",
                                max_map_len=64, max_array_len=4096)
            if isinstance(f, list) and len(f) == 10 and f[MAJOR] == 1:
                return f
        return None

    def ping(self):
        """Shows that we are here, and lets the hub send as many messages as we have read."""
        self.send("PING", credit=self.taken)
        self.taken = 0

    def on_record(self, f):
        body = f[BODY]
        numbers = body.get("m") or body.get("f") or {}
        words = ["%d %s" % (f[HSEQ], f[KIND]), "ba=%d" % body["ba"]]
        words += ["%s=%.9g" % item for item in numbers.items()]
        if "text" in body:
            words.append("text=" + body["text"])
        print(" ".join(words), flush=True)
        self.printed += not body.get("more", False)

    def command(self, op, words):
        """What `op` takes is in the page: KEY and VALUE, VALUE alone, or nothing."""
        names = ("key", "value") if op in ("set", "algo") else ("value",)
        self.send("CMD", id=os.urandom(16), op=op, ttl_ms=5000, args=dict(zip(names, words)))

    def watch(self, most, op, *words):
        self.send("HELLO", minor=0, stream=True, credit=CREDIT)
        silent = 0
        waits = op is not None  # for what comes of the command
        while (self.printed < most or waits) and silent < 10:
            f = self.receive()
            silent = 0 if f else silent + 1
            if f is None or self.taken >= CREDIT // 2:
                self.ping()
            if f is None:
                continue
            kind = f[KIND]
            if kind == "WELCOME":
                self.run, self.incarnation = f[RUN], f[INCARNATION]
                if op:
                    self.command(op, words)
            if kind[0].islower():
                self.on_record(f)
            if kind[0].islower() or kind == "SNAP_CHUNK":
                self.taken += 1
            if kind in TALK:
                said = ["%s=%s" % (k, f[BODY][k]) for k in KEYS if k in f[BODY]]
                print(" ".join([kind] + said), flush=True)
            if kind in ("APPLIED", "REJECTED", "EXPIRED"):
                waits = False
            if kind in ("BYE", "REFUSE"):
                break
        return 0 if silent < 10 else 69


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: viewer.py SOCKET [RECORDS [OPERATION [KEY] [VALUE]]]")
    records = int(sys.argv[2]) if len(sys.argv) > 2 else sys.maxsize
    sys.exit(Viewer(sys.argv[1]).watch(records, *(sys.argv[3:] or [None])))
