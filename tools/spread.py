#!/usr/bin/env python3
"""Spread test: runs one KV-router command many times through the reference and with as many seeds through servegrid.

  tools/setup_reference.sh DIR           # once: a virtual environment with the reference in DIR
  DIR/bin/python tools/spread.py --servegrid ./servegrid --runs 10 -- trace.jsonl --num-workers 4 --router-mode kv_router
  DIR/bin/python tools/spread.py --servegrid ./servegrid --runs 60 --kept difftest-failures/kv-100018

The reference breaks ties at random without a seed, so its runs differ; servegrid's differ by router.seed. For each
figure the table gives mean and deviation of both, the two-sample Kolmogorov-Smirnov distance, and how likely such a
distance or a larger one is when both draw from the same distribution. Exit status: 0 when no figure is less likely than
--alpha (shared out among the figures), 1 otherwise.
"""
import argparse, bisect, json, math, os, statistics, subprocess, sys, tempfile

from difftest import KV_FIELDS, numbers, run_reference


def distance(a, b):
    """The largest difference between two empirical distribution functions."""
    a, b = sorted(a), sorted(b)
    return max(abs(bisect.bisect_right(a, x) / len(a) - bisect.bisect_right(b, x) / len(b)) for x in a + b)


def likelihood(d, n, m):
    """The asymptotic Kolmogorov distribution with Stephens' correction; ties make it larger than it should be."""
    root = math.sqrt(n * m / (n + m))
    t = (root + 0.12 + 0.11 / root) * d
    if t < 0.3:
        return 1.0
    return min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * t * t) for k in range(1, 101)))


def close(values):
    """Figures that differ in the last digits are the same."""
    return [float(f"{v:.9g}") for v in values]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--runs", type=int, default=10)
    ap.add_argument("--alpha", type=float, default=0.01)
    ap.add_argument("--kept", help="the folder of a case that tools/difftest.py kept")
    ap.add_argument("--first-seed", type=int, default=1)
    ap.add_argument("argv", nargs="*", help="arguments of the replay, after --")
    o = ap.parse_args()
    argv = o.argv
    if o.kept:
        with open(os.path.join(o.kept, "argv.json")) as f:
            argv = json.load(f)
        argv = [os.path.join(o.kept, "trace.jsonl") if a.endswith("/trace.jsonl") else a for a in argv]
    reference, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.json")
        for i in range(o.runs):
            rc, text = run_reference(argv, out)
            if rc:
                sys.exit(f"the reference fails: {text[-300:]}")
            reference.append(numbers(out))
            command = [o.servegrid, "replay", "--compat", "dynamo-1.3", *argv, "--set", f"router.seed={o.first_seed + i}", "--report-json", out]
            p = subprocess.run(command, capture_output=True, text=True)
            if p.returncode:
                sys.exit(f"servegrid fails: {p.stderr[-300:]}")
            ours.append(numbers(out))
    unlikely = 0
    print(f"{'figure':28} {'reference mean':>15} {'deviation':>11} {'servegrid mean':>15} {'deviation':>11} {'distance':>9} {'likelihood':>10}")
    for field in KV_FIELDS:
        a, b = close(r[field] for r in reference), close(r[field] for r in ours)
        d = distance(a, b)
        p = likelihood(d, len(a), len(b))
        mark = ""
        if p < o.alpha / len(KV_FIELDS):
            unlikely += 1
            mark = "  differs"
        print(f"{field:28} {statistics.fmean(a):15.6f} {statistics.pstdev(a):11.6f} {statistics.fmean(b):15.6f} {statistics.pstdev(b):11.6f} {d:9.3f} {p:10.4f}{mark}")
    return 1 if unlikely else 0


if __name__ == "__main__":
    sys.exit(main())
