#!/usr/bin/env python3
"""Time and memory of whole sweeps.

  python3 tools/sweeps.py --servegrid ./servegrid --trace conversation_trace.jsonl

Prints, with medians where there are several runs: a 1,000-point sweep over the trace (workers x block size x max
sequences x arrival speed-up) with one job and with two, its peak memory, and what 10,000 points of a 50-request
workload cost beyond their own simulations. Exit status 1 when a target is missed.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

THOUSAND = """
name: thousand
workload: {{trace: {{path: {trace}}}}}
grid:
  deployment.workers: [2, 4, 8, 16, 32]
  engine.block_size: [16, 32, 64, 128, 256]
  engine.max_num_seqs: [16, 32, 64, 128, 256]
  load.speedup: [0.5, 1, 1.25, 1.5, 2, 2.5, 3, 4]
"""

TEN_THOUSAND = """
name: ten-thousand
workload: {synthetic: {input_tokens: 256, output_tokens: 32, requests: 50}}
grid:
  deployment.workers: {range: [1, 10, 1]}
  engine.max_num_seqs: {range: [1, 100, 1]}
  load.speedup: {linspace: [1, 10, 10]}
"""

MAX_SECONDS, MAX_MB, MIN_SCALING, MAX_OVERHEAD = 60, 300, 1.8, 3


def sweep(servegrid, spec, folder, jobs):
    """Runs a sweep in a new folder; returns seconds, peak MB and the results file."""
    out = tempfile.mkdtemp(dir=folder)
    path = os.path.join(folder, "spec.yaml")
    with open(path, "w") as f:
        f.write(spec)
    start = time.perf_counter()
    p = subprocess.Popen([servegrid, "sweep", path, "--output", out, "--jobs", str(jobs), "--quiet"])
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit("the sweep failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, out


def simulated_seconds(servegrid, out):
    """The sum of the points' own wall times."""
    csv = subprocess.run([servegrid, "pareto", out, "--format", "csv"], capture_output=True, text=True, check=True).stdout.splitlines()
    column = csv[0].split(",").index("wall_s")
    return sum(float(line.split(",")[column]) for line in csv[1:])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--trace", required=True)
    ap.add_argument("--slack", type=float, default=1, help="miss a target only by more than this factor: 0.7 on a machine with other work")
    o = ap.parse_args()
    missed = []

    def check(ok, text):
        if not ok:
            missed.append(text)

    with tempfile.TemporaryDirectory() as folder:
        spec = THOUSAND.format(trace=os.path.abspath(o.trace))
        two, mb, out = sweep(o.servegrid, spec, folder, 2)
        one, _, _ = sweep(o.servegrid, spec, folder, 1)
        print(f"1,000 points: {two:.1f} s with two jobs, {one:.1f} s with one ({one / two:.2f}x), peak {mb:.0f} MB, "
              f"{simulated_seconds(o.servegrid, out):.1f} s of simulation", flush=True)
        check(two <= MAX_SECONDS / o.slack, f"1,000 points above {MAX_SECONDS} s")
        check(mb <= MAX_MB, f"1,000 points above {MAX_MB} MB")
        check(one / two >= MIN_SCALING * o.slack, f"two jobs below {MIN_SCALING}x one")
        seconds, mb, out = sweep(o.servegrid, TEN_THOUSAND, folder, 2)
        own = simulated_seconds(o.servegrid, out)
        print(f"10,000 points: {seconds:.2f} s with two jobs, {own:.2f} s of simulation, so {seconds - own / 2:.2f} s of overhead, peak {mb:.0f} MB")
        check(seconds - own / 2 <= MAX_OVERHEAD / o.slack, f"10,000 points cost above {MAX_OVERHEAD} s more than their simulations")
    for m in missed:
        print("MISSED", m)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
