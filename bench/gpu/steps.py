# SPDX-License-Identifier: Apache-2.0
"""Steps of a part of the first hour: programs that may crash, hang or be missing, each in a
process group of its own, within one deadline, and a table of what became of them.

A step's status: ok; ok, more to do (exit status 75); failed (its exit status); signal N;
timeout; skipped (it says so itself, or there was no time). What it printed is a file of its
name.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import tarfile
import threading
import time

ENOUGH = 3  # seconds: with less than this left nothing is begun
HEAD, TAIL = 200_000, 400_000  # bytes that are kept of what a step printed
IN_A_ROW = 12  # timeouts after which the rest of a crowd is not tried
ENDS = {0: "ok", 75: "ok, more to do", 77: "skipped"}  # by exit status; 75: EX_TEMPFAIL
MANY = 30  # rows of one crowd's failures; the rest is counted


class Row:
    def __init__(self, name, status, seconds=0.0, finding="", text=""):
        self.name, self.status, self.seconds = name, status, seconds
        self.finding, self.text = finding, text

    @property
    def is_bad(self):
        return self.status not in ENDS.values()


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def of_tap(text):
    """What a test's output comes to: its plan's reason to skip, its failures, its number."""
    if skip := re.search(r"^1\.\.0 # SKIP ?(.*)", text, re.M):
        return "skipped: " + skip[1]
    good = len(re.findall(r"^ok ", text, re.M))
    bad = re.findall(r"^not ok .*", text, re.M)
    if bad:
        return f"{good} ok, {len(bad)} not: {bad[0]}"
    if re.search(r"^1\.\.\d", text, re.M):
        return f"{good} ok"
    return f"{good} ok and no end: {last_line(text)}"


class Steps:
    """part: names the files in the folder OUT; logs: where steps' outputs go; seconds: of
    everything together."""

    def __init__(self, part, out, logs, seconds):
        self.part, self.out, self.logs = part, out, logs
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.rows, self.notes = [], []
        self.lock = threading.Lock()
        os.makedirs(out, exist_ok=True)
        os.makedirs(logs, exist_ok=True)

    def left(self):
        return self.end - time.monotonic()

    # ---- one ----

    def command(self, name, command, cap, env=None, stdin="", finding=None):
        """Runs COMMAND for at most CAP seconds, less if the part ends before. FINDING makes
        a sentence of what it printed. The Row, which is in no table yet."""
        limit = min(cap, self.left())
        if limit < ENOUGH:
            return Row(name, "skipped", finding="no time was left")
        path = os.path.join(self.logs, re.sub(r"[^A-Za-z0-9._-]+", "-", name) + ".txt")
        begin = time.monotonic()
        with open(path, "wb+") as log:
            try:
                child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                         env={**os.environ, **(env or {})},
                                         start_new_session=True)
            except OSError as why:
                return Row(name, "failed", finding=f"{command[0]}: {why.strerror}")
            status = self.wait(child, stdin, limit)
            text = self.read(log)
        row = Row(name, status, time.monotonic() - begin, text=text)
        try:
            row.finding = finding(text) if finding else ""
            if not row.finding and status != "ok":
                row.finding = last_line(text)
        except (ValueError, KeyError, IndexError, TypeError):
            row.finding = last_line(text)  # not what a program prints that ends well
            row.status = "failed" if row.status == "ok" else row.status
        if status == "ok" and row.finding.startswith("skipped: "):
            row.status, row.finding = "skipped", row.finding[len("skipped: "):]
        return row

    def wait(self, child, stdin, limit):
        """The status of CHILD after at most LIMIT seconds; nothing of its group stays."""
        try:
            child.communicate(stdin.encode(), timeout=limit)
            code = child.returncode
        except subprocess.TimeoutExpired:
            code = None
        for how, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
            try:
                os.killpg(child.pid, how)
                child.wait(patience if code is None else 0.1)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                pass
        if code is None:
            return "timeout" if child.poll() is not None else "timeout, cannot be killed"
        number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
        if number:
            try:
                return f"signal {number} ({signal.Signals(number).name})"
            except ValueError:
                return f"signal {number}"
        return ENDS.get(code, f"failed ({code})")

    @staticmethod
    def read(log):
        """What is in LOG; of a long one its beginning and its end, also in the file."""
        size = log.seek(0, os.SEEK_END)
        log.seek(0)
        if size <= HEAD + TAIL:
            return log.read().decode(errors="replace")
        head = log.read(HEAD)
        log.seek(size - TAIL)
        text = head + b"\n[...]\n" + log.read(TAIL)
        log.seek(0)
        log.truncate()
        log.write(text)
        return text.decode(errors="replace")

    def run(self, name, command, cap, **more):
        row = self.command(name, command, cap, **more)
        self.add(row)
        return row

    def add(self, row):
        self.rows.append(row)
        print(f"[{time.monotonic() - self.start:5.0f} s] {row.name}: {row.status} {row.finding}",
              flush=True)
        self.save()

    # ---- many at once ----

    def crowd(self, name, jobs, at_once, cap, patience):
        """JOBS, each (name, command, env) of a test that prints TAP, AT_ONCE of them at a
        time, for CAP seconds; one may take PATIENCE. A row for all, one for each that is
        bad. The rows of all, in JOBS' order."""
        begin = time.monotonic()
        end = begin + min(cap, self.left())
        slow = 0

        def do(job):
            nonlocal slow
            if time.monotonic() > end - ENOUGH:
                return Row(job[0], "skipped", finding="no time was left")
            if slow >= IN_A_ROW:
                return Row(job[0], "skipped", finding=f"{slow} before it hung in a row")
            limit = min(patience, end - time.monotonic())
            row = self.command(job[0], job[1], limit, env=job[2], finding=of_tap)
            if row.status.startswith("timeout") and limit < patience:
                return Row(job[0], "skipped", row.seconds, "cut off: no time was left", row.text)
            with self.lock:
                slow = slow + 1 if row.status.startswith("timeout") else 0
            return row

        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            rows = list(pool.map(do, jobs))
        bad = [row for row in rows if row.is_bad]
        kinds = {}
        for row in rows:
            kind = f"skipped ({row.finding})" if row.status == "skipped" else row.status
            kinds[kind] = kinds.get(kind, 0) + 1
        finding = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda k: -k[1]))
        status = ("failed" if bad or not rows else
                  "ok" if any(row.status == "ok" for row in rows) else "skipped")
        self.add(Row(name, status, time.monotonic() - begin, finding or "there are none"))
        for row in bad[:MANY]:
            self.add(row)
        if bad[MANY:]:
            self.add(Row(name, "failed", finding=f"{len(bad) - MANY} more are bad"))
        return rows

    # ---- what is left behind ----

    def table(self):
        lines = [f"part {self.part}: {time.monotonic() - self.start:.0f} s",
                 f"{'step':44} {'status':18} {'s':>5}  finding"]
        lines += [f"{r.name[:44]:44} {r.status:18} {r.seconds:5.0f}  {r.finding[:200]}"
                  for r in self.rows]
        return "\n".join([*lines, *self.notes]) + "\n"

    def path(self, name):
        return os.path.join(self.out, f"{self.part}{name}")

    def write(self, name, text):
        with open(self.path(name) + ".part", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(self.path(name) + ".part", self.path(name))

    def save(self):
        """The table as it is by now: a part that is killed has said what it knew."""
        self.write(".txt", self.table())

    def archive(self, name, folder, members, limit):
        """MEMBERS of FOLDER as OUT/PART+NAME, unless that comes to LIMIT bytes: whether it
        is there then."""
        path = self.path(name)
        try:
            with tarfile.open(path, "w:xz", preset=1) as tar:
                for member in members:
                    if os.path.exists(os.path.join(folder, member)):
                        tar.add(os.path.join(folder, member), member)
            if os.path.getsize(path) < limit:
                return True
        except OSError as why:
            self.notes.append(f"{name}: {why}")
        if os.path.exists(path):
            os.remove(path)
        return False
