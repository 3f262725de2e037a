#!/usr/bin/env python3
"""The AgentX benchmark on public recordings: Qwen3-32B on eight H200 or B200, 1 to 64 users, with and without host memory.

  python3 tools/agentx.py --servegrid ./servegrid --traces FOLDER

FOLDER holds the kv-cache-tester conversations, one JSON file each. Prints the sweep of docs/agentx.md. Exit status 1 when it takes
too long, when requests of a point are not accounted for, or when the curves do not have the shape that the benchmark describes:
more users give more throughput and less speed for each of them, and host memory helps both once the GPUs are too small for
the KV cache.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time

SPEC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "agentx", "grid.yaml")
GPUS, USERS, HOST_BLOCKS = ["h200_sxm", "b200_sxm"], [1, 2, 4, 8, 16, 32, 64], [0, 131072]
MAX_SECONDS = 60
THROUGHPUT, INTERACTIVITY = "total_throughput_tok_s_per_gpu", "p90_e2e_normalised_interactivity"
REUSE, MOST = "prefix_cache_reused_ratio", "theoretical_hit_ratio"
# The GPUs' memory is too small when this much less is reused than a cache without limit would have; then host memory must
# make both figures so many times as good.
SHORT, HELPS = 0.05, 1.2


def sweep(servegrid, traces, folder):
    """Runs the sweep; returns seconds, peak MB and the points by GPU, users and host blocks."""
    start = time.perf_counter()
    p = subprocess.Popen([servegrid, "sweep", SPEC, "--output", folder, "--quiet", "--set", f"workload.trace.path={os.path.abspath(traces)}",
                          "--set", "timing.tp=8", "--set", f"grid.timing.gpu={GPUS}", "--set", f"grid.load.concurrency={USERS}",
                          "--set", f"grid.tiers.num_g2_blocks={HOST_BLOCKS}"])
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit("the sweep failed")
    seconds = time.perf_counter() - start
    table = subprocess.run([servegrid, "pareto", folder, "--format", "csv"], capture_output=True, text=True, check=True).stdout
    points = {(r["gpu"], int(r["concurrency"]), int(r["num_g2_blocks"])): r for r in csv.DictReader(table.splitlines())}
    return seconds, usage.ru_maxrss / 1024, points


def unaccounted(p):
    """What does not add up in a point; empty when everything does."""
    n = {k: int(p[k]) for k in ("num_requests", "completed_requests", "unfinished_requests", "rejected_requests", "never_issued_requests",
                                "started_plays", "completed_plays", "warm_up_requests")}
    if n["completed_requests"] + n["unfinished_requests"] + n["rejected_requests"] != n["num_requests"] or n["completed_requests"] == 0:
        yield f"of {n['num_requests']} requests {n['completed_requests']} completed, {n['unfinished_requests']} did not and {n['rejected_requests']} were rejected"
    if n["never_issued_requests"] < 0 or n["completed_plays"] > n["started_plays"] or n["started_plays"] < int(p["concurrency"]):
        yield f"{n['completed_plays']} of {n['started_plays']} plays completed, {n['never_issued_requests']} requests were never issued"
    if float(p[REUSE]) > float(p[MOST]):
        yield f"{p[REUSE]} of the input was reused, a cache without limit would have {p[MOST]}"


def shape(points):
    """What the curves of a GPU do otherwise than the benchmark describes."""
    def figures(p):
        return float(p[THROUGHPUT]), float(p[INTERACTIVITY])

    def short(p):
        return float(p[MOST]) - float(p[REUSE]) > SHORT

    for gpu in GPUS:
        for host in HOST_BLOCKS:
            curve = [points[gpu, users, host] for users in USERS]
            for fewer, more in zip(curve, curve[1:]):
                (t0, i0), (t1, i1) = figures(fewer), figures(more)
                where = f"{gpu}, {host} host blocks, {fewer['concurrency']} to {more['concurrency']} users"
                if not short(more) and not t1 > t0:
                    yield f"{where}: throughput goes from {t0:.0f} to {t1:.0f} tokens/s/GPU"
                if not i1 < i0:
                    yield f"{where}: interactivity goes from {i0:.1f} to {i1:.1f} tokens/s"
        device, host = HOST_BLOCKS
        without = [points[gpu, users, device] for users in USERS if short(points[gpu, users, device])]
        if not without:
            yield f"{gpu}: the KV cache is never short, so nothing is shown of host memory"
        for p in without:
            (t0, i0), (t1, i1) = figures(p), figures(points[gpu, int(p["concurrency"]), host])
            if not (t1 > HELPS * t0 and i1 > HELPS * i0):
                yield f"{gpu}, {p['concurrency']} users: host memory takes {t0:.0f} tokens/s/GPU and {i0:.1f} for each user to {t1:.0f} and {i1:.1f}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--traces", required=True, help="the folder of the conversations")
    ap.add_argument("--slack", type=float, default=1, help="miss the time only by more than this factor: 0.7 on a machine with other work")
    o = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds, mb, points = sweep(o.servegrid, o.traces, folder)
    missed = []
    print("| GPU | users | host blocks | total tokens/s/GPU | p90 interactivity, tokens/s | p90 TTFT | reuse | without a limit | requests |\n|---|---|---|---|---|---|---|---|---|")
    for key in [(gpu, users, host) for gpu in GPUS for users in USERS for host in HOST_BLOCKS]:
        if key not in points:
            sys.exit(f"no point {key} among {len(points)}")
        p = points[key]
        print(f"| {key[0]} | {key[1]} | {key[2]:,} | {float(p[THROUGHPUT]):,.0f} | {float(p[INTERACTIVITY]):.1f} | {float(p['p90_ttft_ms']):,.0f} ms "
              f"| {float(p[REUSE]):.1%} | {float(p[MOST]):.1%} | {int(p['num_requests']):,} |")
        missed += [f"{key[0]}, {key[1]} users, {key[2]} host blocks: {what}" for what in unaccounted(p)]
    print(f"{len(points)} points in {seconds:.1f} s, peak {mb:.0f} MB")
    missed += shape(points)
    if seconds > MAX_SECONDS / o.slack:
        missed.append(f"the sweep takes {seconds:.1f} s, more than {MAX_SECONDS} s")
    for m in missed:
        print("MISSED", m)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
