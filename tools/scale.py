#!/usr/bin/env python3
"""What points cost past one machine: through the queue, in shards, in bytes and in memory.

  python3 tools/scale.py --servegrid ./servegrid --nats-server nats-server --trace conversation_trace.jsonl

Every figure stands beside that of the local pool of the same run, as wall time and as processor time of all processes
together: on a machine with other work only the latter says something. --only picks measurements, --million adds those of
1,000,000 points, --json writes all figures. Exit status 1 when a target is missed.
"""
import argparse
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from sweeps import TEN_THOUSAND

# 350 points of real work on the conversation trace.
REAL = """
name: real
workload: {{trace: {{path: {trace}}}}}
grid:
  deployment.workers: [2, 4, 8, 16, 32]
  engine.block_size: [64, 512]
  engine.max_num_seqs: [16, 32, 64, 128, 256]
  load.speedup: {{linspace: [0.5, 5.5, 21]}}
"""

MANY = """
name: many
workload: {{synthetic: {{input_tokens: 10, output_tokens: 2, requests: 1}}}}
grid:
  deployment.workers: {{range: [1, {tenth}, 1]}}
  engine.max_num_seqs: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
"""

MAX_OVERHEAD_MS, MAX_LOSS = 2, 0.10


class Process:
    """A process, with what it used once it has ended."""

    def __init__(self, *command):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.popen = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.errors)
        self.seconds = self.mb = 0.0

    def wait(self, codes=(0,)):
        _, status, usage = os.wait4(self.popen.pid, 0)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if self.popen.returncode not in codes:
            self.errors.seek(0)
            sys.exit(f"{self.popen.args} ended with {self.popen.returncode}: {self.errors.read()[-2000:]}")

    def stop(self, how=signal.SIGTERM, codes=(0, 1, -signal.SIGTERM, -signal.SIGKILL)):
        if self.popen.returncode is None:
            self.popen.send_signal(how)
            self.wait(codes)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Queue:
    """A nats-server of its own."""

    def __init__(self, program, folder):
        self.port, self.monitor = free_port(), free_port()
        self.url = f"nats://127.0.0.1:{self.port}/scale"
        self.process = Process(program, "-js", "-a", "127.0.0.1", "-p", str(self.port), "-m", str(self.monitor), "-sd", tempfile.mkdtemp(dir=folder))

    def stream(self, kind):
        """Messages and bytes of a stream."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/jsz?streams=true") as answer:
                accounts = json.load(answer).get("account_details", [])
        except OSError:
            return 0, 0
        for stream in (s for a in accounts for s in a.get("stream_detail", [])):
            if stream["name"] == f"servegrid-scale-{kind}":
                return stream["state"]["messages"], stream["state"]["bytes"]
        return 0, 0

    def clients(self):
        """How many clients are connected."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/connz") as answer:
                return json.load(answer)["num_connections"]
        except OSError:
            return 0


class Bench:
    def __init__(self, options, folder):
        self.o, self.folder = options, folder
        self.figures, self.missed = {}, []

    def spec(self, text):
        path = os.path.join(tempfile.mkdtemp(dir=self.folder), "spec.yaml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def out(self):
        return tempfile.mkdtemp(dir=self.folder)

    def note(self, name, value, text, ok=True):
        self.figures[name] = value
        print(text, flush=True)
        if not ok:
            self.missed.append(text)

    def local(self, spec, *flags, out=None):
        """Runs a sweep with two jobs; returns wall seconds, processor seconds, peak MB and its folder."""
        out = out or self.out()
        start = time.perf_counter()
        p = Process(self.o.servegrid, "sweep", spec, "--output", out, "--jobs", "2", "--quiet", *flags)
        p.wait()
        return time.perf_counter() - start, p.seconds, p.mb, out

    def queued(self, spec, workers, jobs, *flags):
        """Runs a sweep through a queue with workers that are there already."""
        queue, out = Queue(self.o.nats_server, self.folder), self.out()
        crew = [
            Process(self.o.servegrid, "worker", "--queue", queue.url, "--jobs", str(jobs), "--cache", os.path.join(out, "cache"), "--quiet")
            for _ in range(workers)
        ]
        while queue.clients() < workers:
            time.sleep(0.05)
        start = time.perf_counter()
        p = Process(self.o.servegrid, "sweep", spec, "--output", out + "/out", "--quiet", "--queue", queue.url, *flags)
        p.wait()
        wall = time.perf_counter() - start
        for w in crew:
            w.stop()
        queue.process.stop()
        parts = {"coordinator": p.seconds, "workers": sum(w.seconds for w in crew), "server": queue.process.seconds}
        return wall, sum(parts.values()), parts, max(w.mb for w in crew), out + "/out"

    def rows(self, out):
        """The rows of a sweep without the time that they took, one by one: what this process has in memory at its peak, Linux says of
        every process that it starts later."""
        with subprocess.Popen([self.o.servegrid, "pareto", out, "--format", "csv"], stdout=subprocess.PIPE, text=True) as p:
            column = None
            for line in p.stdout:
                cells = line.rstrip("\n").split(",")
                column = cells.index("wall_s") if column is None else column
                yield cells[:column] + cells[column + 1:]
        if p.returncode != 0:
            sys.exit(f"pareto {out} ended with {p.returncode}")

    def same(self, one, other):
        if any(a != b for a, b in itertools.zip_longest(self.rows(one), self.rows(other))):
            sys.exit("the results through the queue are not those of the local pool")

    def overhead(self):
        """What a tiny point costs more through the queue than in the local pool."""
        spec = self.spec(TEN_THOUSAND)
        wall, cpu, mb, out = self.local(spec)
        for workers, jobs in (2, 1), (1, 2):
            q_wall, q_cpu, parts, q_mb, q_out = self.queued(spec, workers, jobs)
            self.same(out, q_out)
            more, more_cpu = (q_wall - wall) / 10, (q_cpu - cpu) / 10
            detail = ", ".join(f"{name} {seconds / 10:.2f}" for name, seconds in parts.items())
            self.note(
                f"overhead_{workers}x{jobs}", {"local_s": wall, "local_cpu_s": cpu, "queue_s": q_wall, "queue_cpu_s": parts, "ms_a_point": more, "cpu_ms_a_point": more_cpu},
                f"10,000 tiny points, {workers} worker(s) with {jobs} job(s): {q_wall:.1f} s, {wall:.1f} s locally, {more:.2f} ms a point more; "
                f"processor time a point {q_cpu / 10:.2f} ms ({detail}), {cpu / 10:.2f} locally, {more_cpu:.2f} ms more",
                more <= MAX_OVERHEAD_MS / self.o.slack)

    def loss(self):
        """What eight worker processes on two cores lose against the local pool on real work."""
        spec = self.spec(REAL.format(trace=os.path.abspath(self.o.trace)))
        wall, cpu, _, out = self.local(spec)
        q_wall, q_cpu, parts, mb, q_out = self.queued(spec, 8, 1)
        self.same(out, q_out)
        lost, lost_cpu = q_wall / wall - 1, q_cpu / cpu - 1
        self.note(
            "loss", {"local_s": wall, "local_cpu_s": cpu, "queue_s": q_wall, "queue_cpu_s": parts, "lost": lost, "lost_cpu": lost_cpu, "worker_mb": mb},
            f"1,050 points of the trace, 8 workers: {q_wall:.1f} s, {wall:.1f} s locally, {100 * lost:.0f} % lost; "
            f"processor time {q_cpu:.1f} s, {cpu:.1f} s locally, {100 * lost_cpu:.0f} % more; a worker has {mb:.0f} MB",
            lost <= MAX_LOSS / self.o.slack)

    def bytes(self):
        """What a point weighs on its way and at the end."""
        spec, queue, out = self.spec(TEN_THOUSAND), Queue(self.o.nats_server, self.folder), self.out()
        metrics = os.path.join(self.folder, "coordinator.prom")
        p = Process(self.o.servegrid, "sweep", spec, "--output", out, "--quiet", "--queue", queue.url, "--metrics-file", metrics)
        messages = 0
        while messages < 10_000:
            messages, size = queue.stream("points")
            time.sleep(0.05)
        point = size / messages
        w = Process(self.o.servegrid, "worker", "--queue", queue.url, "--jobs", "2", "--cache", os.path.join(self.folder, "cache"), "--quiet")
        p.wait()
        w.stop()
        queue.process.stop()
        with open(metrics) as f:
            received = float(re.search(r"^servegrid_queue_parts_received_bytes_total\S* (\S+)", f.read(), re.M)[1])
        figures = {
            "point_message": point, "part": received / 10_000, "journal": os.path.getsize(out + "/journal.jsonl") / 10_000,
            "parquet": os.path.getsize(out + "/results.parquet") / 10_000,
        }
        self.note("bytes", figures, "bytes a point: " + ", ".join(f"{name} {value:.0f}" for name, value in figures.items()))

    def coordinator(self):
        """What a coordinator needs for many points, until the first are published."""
        for points in [100_000] + [1_000_000] * self.o.million:
            spec, queue, out = self.spec(MANY.format(tenth=points // 10)), Queue(self.o.nats_server, self.folder), self.out()
            start = time.perf_counter()
            p = Process(self.o.servegrid, "sweep", spec, "--output", out, "--quiet", "--queue", queue.url, "--max-points", str(points))
            while queue.stream("points")[0] == 0 and p.popen.poll() is None:
                time.sleep(0.02)
            wall = time.perf_counter() - start
            with open(f"/proc/{p.popen.pid}/status") as f:
                mb = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) / 1024
            p.stop(signal.SIGKILL)
            queue.process.stop()
            self.note(f"coordinator_{points}", {"s": wall, "mb": mb}, f"{points:,} points: {wall:.1f} s to the first in the queue, {mb:.0f} MB, {1e3 * mb / points:.1f} kB a point")

    def merge(self):
        """What it costs to put shards together."""
        spec, out = self.spec(TEN_THOUSAND), self.out()
        for shard in "12":
            self.local(spec, "--shard", f"{shard}/2", out=out)
        start = time.perf_counter()
        p = Process(self.o.servegrid, "merge", out, "--output", self.out())
        p.wait()
        wall = time.perf_counter() - start
        self.note("merge", {"s": wall, "cpu_s": p.seconds, "mb": p.mb}, f"merge of 2 shards of 5,000 points: {wall:.1f} s, processor time {p.seconds / 10:.3f} ms a point, {p.mb:.0f} MB")


MEASUREMENTS = ["overhead", "loss", "bytes", "coordinator", "merge"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--nats-server", required=True)
    ap.add_argument("--trace", required=True)
    ap.add_argument("--only", action="append", choices=MEASUREMENTS)
    ap.add_argument("--million", action="store_true", help="also 1,000,000 points in one coordinator")
    ap.add_argument("--slack", type=float, default=1, help="miss a target only by more than this factor: 0.7 on a machine with other work")
    ap.add_argument("--json", help="a file for all figures")
    o = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        b = Bench(o, folder)
        for name in o.only or MEASUREMENTS:
            getattr(b, name)()
    if o.json:
        with open(o.json, "w") as f:
            json.dump(b.figures, f, indent=1)
    for m in b.missed:
        print("MISSED", m)
    return 1 if b.missed else 0


if __name__ == "__main__":
    sys.exit(main())
