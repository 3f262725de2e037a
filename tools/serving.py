"""A `servegrid serve` that a script starts, looks at and ends; and how its simulated figures compare with what clients measured.

For tools/clients.py and tools/live.py.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

# A deployment whose tokens take as long as those of a real one, so that what a client adds stays small beside them.
DEPLOYMENT = ["--timing", '{"gpu":"h200_sxm","model":"qwen3-32b"}', "--tokenizer", "bytes"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One `servegrid serve`, ready for requests. On leaving the with block it is interrupted, and must end by itself."""

    def __init__(self, program, folder, *flags, deployment=DEPLOYMENT, environment=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.parquet = self.folder / "simulated.parquet"
        self.command = [program, "serve", "--listen", f"127.0.0.1:{self.port}", "--requests-parquet", str(self.parquet)]
        self.command += [*deployment, *flags]
        self.environment = {**os.environ, **(environment or {})}
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if self.stop() not in (0, 130) and kind is None:
            raise SystemExit(f"{' '.join(self.command)} ended with {self.process.returncode}:\n{self.log()}")

    def start(self):
        with open(self.folder / "serve.log", "w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        deadline = time.monotonic() + 30
        while self.get("/health") is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SystemExit(f"{' '.join(self.command)} does not serve:\n{self.log()}")
            time.sleep(0.05)

    def log(self):
        return (self.folder / "serve.log").read_text()[-4000:]

    def get(self, path):
        """What a path answers, or None without an answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return answer.read().decode()
        except (OSError, urllib.error.HTTPError):
            return None

    def metric(self, name):
        """The sum of the samples of a metric over its labels; None when there is none."""
        values = [float(line.rsplit(" ", 1)[1]) for line in (self.get("/metrics") or "").splitlines()
                  if line.split("{")[0].split(" ")[0] == name]
        return sum(values) if values else None

    def stop(self):
        """Interrupts the server and returns its exit status; one that does not end within 20 s is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()

    def simulated(self):
        """The simulated life of each request, by name, of a server that has ended."""
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(self.parquet).to_pylist()
        return {row["uuid"]: row for row in rows}


def rss_mb(pid):
    """What a process holds in memory now, in MiB."""
    return status_mb(pid, "VmRSS")


def peak_mb(pid):
    """What a process has held in memory at most, in MiB."""
    return status_mb(pid, "VmHWM")


def status_mb(pid, key):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def means(latency):
    """Mean TTFT and ITL in ms of requests, by name; 0 for none."""
    columns = {name: [r[column] for r in latency if r[column] is not None] for column, name in enumerate(("TTFT", "ITL"))}
    return {name: statistics.fmean(values) if values else 0 for name, values in columns.items()}


class Verdict:
    """What held and what did not."""

    def __init__(self, slack=1):
        self.problems, self.figures = [], []
        self.slack = slack  # how many times as far times may be off on a machine that has other work
        self.late = 0  # how many of the problems a busy machine may have made

    def expect(self, held, problem, late=False):
        """Notes a problem unless something held; late says that a busy machine may be why."""
        if not held:
            self.problems.append(problem)
            self.late += late
            print(f"  FAILED: {problem}", flush=True)
        return held

    def run(self, name, check, args):
        """Runs a check, and again, up to args.tries times, while all that fails may come from a busy machine."""
        for attempt in range(args.tries):
            started, tried = time.monotonic(), Verdict(args.slack)
            print(f"== {name}" + (f", try {attempt + 1}" if attempt else ""), flush=True)
            check(args, tried)
            print(f"  {time.monotonic() - started:.0f} s", flush=True)
            if len(tried.problems) == 0 or len(tried.problems) > tried.late:
                break
        self.problems += tried.problems
        self.figures += tried.figures

    def figure(self, text):
        self.figures.append(text)
        print(f"  {text}", flush=True)

    def agree(self, what, measured, reference, tolerance, against="simulated"):
        """Two figures that must be within a tolerance of each other."""
        off = measured / reference - 1 if reference else float(measured != reference)
        self.figure(f"{what}: {measured:.2f} measured, {reference:.2f} {against}, {off:+.2%}")
        tolerance *= self.slack
        self.expect(abs(off) <= tolerance, f"{what} is {off:+.2%} off, more than {tolerance:.0%}", late=True)

    def agree_latency(self, what, measured, reference, tolerance=0.05, against="simulated"):
        """Mean TTFT and ITL of the same requests, as (TTFT, ITL) in ms of each; an ITL of None is of a request with one token."""
        theirs = means(reference)
        for name, ours in means(measured).items():
            if self.expect(ours and theirs[name], f"{what}: no {name}"):
                self.agree(f"{what}: mean {name} in ms", ours, theirs[name], tolerance, against)

    def finish(self):
        """The exit status, with the reasons printed."""
        for problem in self.problems:
            print(f"problem: {problem}")
        print(f"{len(self.problems)} problems" if self.problems else "all held")
        return 1 if self.problems else 0


def arguments(doc, checks, folder):
    """What all tools with checks can be told; folder says what is in --folder."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--servegrid", required=True, type=lambda path: str(Path(path).resolve()))
    p.add_argument("--folder", type=Path, help=folder)
    p.add_argument("--only", nargs="*", choices=checks, default=list(checks))
    p.add_argument("--tries", type=int, default=1, help="how often to measure where a busy machine may be why something is off")
    p.add_argument("--slack", type=float, default=1, help="how many times as far times may be off on a machine that has other work")
    p.add_argument("--json", type=Path)
    return p


def run_checks(args, checks, prefix):
    """Runs checks by name in --folder, or in a new one that goes when all held, and ends the program."""
    made = args.folder is None
    args.folder = Path(tempfile.mkdtemp(prefix=prefix)) if made else args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    verdict = Verdict()
    for name, check in checks.items():
        verdict.run(name, check, args)
    if args.json:
        args.json.write_text(json.dumps(dict(figures=verdict.figures, problems=verdict.problems), indent=2))
    status = verdict.finish()
    if made and status == 0:
        shutil.rmtree(args.folder)
    sys.exit(status)
