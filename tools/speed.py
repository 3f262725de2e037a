#!/usr/bin/env python3
"""Speed and memory of servegrid beside the reference and the newest peer, on the same machine in the same minutes.

  python3 tools/speed.py --servegrid ./servegrid --reference DIR/bin/python --peer DIR/bin/aisimulate --trace conversation_trace.jsonl

The peer runs the job with timing tables. For each job it runs the two in turn and prints medians: "inside" is simulation and report after parsing, as each
program measures it itself; "process" is from start to exit; memory is the peak of the process. The last lines show
how servegrid's cost grows when the trace is repeated ten times. Exit status 1 when a target is missed.
"""
import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time


def engine(**args):
    return json.dumps(args)


def workers(n, block, *more):
    return ["--num-workers", str(n), "--extra-engine-args", engine(block_size=block), *more]


KV_ROUTER = ("--router-mode", "kv_router")
JOBS = [  # name, arguments, runs of the reference (None: --runs), targets: inside and process ratio
    ("4 workers, 512-token blocks", workers(4, 512), None, 100, 80),
    ("8 workers, 64-token blocks", workers(8, 64), None, 200, 150),
    ("64 workers, 64-token blocks", workers(64, 64), None, 300, None),
    ("KV router, 8 workers, 64-token blocks", workers(8, 64, *KV_ROUTER), 1, 80, None),
    ("KV router, 64 workers, 64-token blocks", workers(64, 64, *KV_ROUTER), 1, 120, None),
    ("3 prefill and 5 decode workers, 64-token blocks",
     ["--num-prefill-workers", "3", "--num-decode-workers", "5", "--prefill-engine-args", engine(block_size=64, worker_type="prefill"),
      "--decode-engine-args", engine(block_size=64, worker_type="decode")], 1, 50, None),
    ("SGLang, 8 workers, 64-token pages", ["--num-workers", "8", "--extra-engine-args", engine(engine_type="sglang", block_size=64)], 1, 50, None),
]
MAX_MB = 64
# What 256 workers may cost in times of 8, with the KV router.
MAX_WORKERS_COST = 3
# With timing tables: the peer's native ones, and the reference 1.2.1, which asks Python for every pass. It took 160 s where
# the peer took 2.5 s (a quiet machine with 2 cores), and is not run here.
TABLES = {"gpu": "h200_sxm", "model": "meta-llama/Meta-Llama-3.1-8B", "backend": "vllm"}
PEER_RATIO, REFERENCE_121_PEERS, REFERENCE_121_RATIO, TABLES_MB = 25, 160 / 2.5, 1000, 60
MAX_GROWTH = 11


def run(argv, report):
    """Runs a command to its end; returns inside ms, process ms and peak MB."""
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.environ["DYN_LOG"] = "error"
        os.execvp(argv[0], argv)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter() - start) * 1000
    if status:
        sys.exit(f"failed: {' '.join(argv)}")
    with open(report) as f:
        return json.load(f)["wall_time_ms"], wall, usage.ru_maxrss / 1024


def medians(rows):
    return [statistics.median(column) for column in zip(*rows)]


def ten_times(trace, path):
    """Writes the trace ten times in a row: later copies arrive later and share nothing with earlier ones."""
    with open(trace) as f:
        rows = [json.loads(line) for line in f if line.strip()]
    span = max(r["timestamp"] for r in rows) + 1000
    ids = max(max(r["hash_ids"]) for r in rows) + 1
    with open(path, "w") as f:
        for copy in range(10):
            for r in rows:
                f.write(json.dumps({**r, "timestamp": r["timestamp"] + copy * span, "hash_ids": [h + copy * ids for h in r["hash_ids"]]}) + "\n")


def beside_the_peer(o, folder):
    """The job with timing tables, two workers and 64-token blocks; returns the targets that were missed."""
    config, out, report = (os.path.join(folder, name) for name in ("peer.yaml", "peer", "tables.json"))
    with open(config, "w") as f:  # JSON is YAML
        json.dump({
            "traffic": {"source": {"type": "trace", "format": "mooncake", "paths": [os.path.abspath(o.trace)], "block_size": 512},
                        "load": {"type": "trace_timestamps"}},
            "engine": {"mode": "aggregated", "model": TABLES["model"], "hardware": TABLES["gpu"], "backend": TABLES["backend"], "workers": {"aggregated": {
                "parallelism": {"replicas": 2, "tensor": 1, "pipeline": 1, "attention_data": 1, "moe_tensor": 1, "moe_expert": 1},
                "scheduler": {"max_batched_tokens": 8192, "max_sequences": 256}, "kv_cache": {"block_size": 64, "prefix_caching": True}}}},
        }, f)
    mine, theirs = [], []
    for _ in range(o.runs):
        theirs.append(run([o.peer, "predict", "--config", config, "--format", "json", "--output-dir", out, "--overwrite"],
                          os.path.join(out, "prediction.json")))
        mine.append(medians([run([o.servegrid, "replay", o.trace, "--num-workers", "2", "--timing", json.dumps(TABLES), "--report-json", report], report)
                             for _ in range(5)]))
    t, m = medians(theirs), medians(mine)
    reference = t[0] * REFERENCE_121_PEERS / m[0]
    print(f"timing tables, 2 workers: the peer inside {t[0]:.0f} / {m[0]:.1f} ms = {t[0] / m[0]:.0f}x, process {t[1]:.0f} / {m[1]:.1f} ms = "
          f"{t[1] / m[1]:.0f}x, peak {t[2]:.0f} / {m[2]:.0f} MB; the reference 1.2.1 {reference:.0f}x", flush=True)
    return [f"timing tables: {what}" for what, bad in (
        (f"inside below {PEER_RATIO}x the peer", t[0] / m[0] < PEER_RATIO * o.slack),
        (f"process below {PEER_RATIO}x the peer", t[1] / m[1] < PEER_RATIO * o.slack),
        (f"inside below {REFERENCE_121_RATIO}x the reference 1.2.1", reference < REFERENCE_121_RATIO * o.slack),
        (f"above {TABLES_MB} MB", m[2] > TABLES_MB),
    ) if bad]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--reference", help="Python of the reference's virtual environment; left out, only growth is measured")
    ap.add_argument("--peer", help="the peer's aisimulate; left out, it is not measured")
    ap.add_argument("--trace", required=True)
    ap.add_argument("--rows", type=int, help="replay the beginning of the trace only, so many requests")
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--slack", type=float, default=1, help="miss a target only by more than this factor: 0.7 on a machine with other work")
    o = ap.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        if o.rows:
            with open(o.trace) as f:
                rows = list(itertools.islice(f, o.rows))
            o.trace = os.path.join(folder, "beginning.jsonl")
            with open(o.trace, "w") as f:
                f.writelines(rows)

        def ours(trace, arguments):
            return run([o.servegrid, "replay", trace, "--compat", "dynamo-1.3", *arguments, "--report-json", report], report)

        for name, arguments, runs, inside, process in JOBS if o.reference else []:
            mine, theirs = [], []
            for _ in range(min(o.runs, runs or o.runs)):
                theirs.append(run([o.reference, "-m", "dynamo.replay", o.trace, *arguments, "--report-json", report], report))
                mine.append(medians([ours(o.trace, arguments) for _ in range(5)]))
            t, m = medians(theirs), medians(mine)
            print(f"{name}: inside {t[0]:.0f} / {m[0]:.1f} ms = {t[0] / m[0]:.0f}x, process {t[1]:.0f} / {m[1]:.1f} ms = {t[1] / m[1]:.0f}x, "
                  f"peak {t[2]:.0f} / {m[2]:.0f} MB", flush=True)
            if t[0] / m[0] < inside * o.slack:
                missed.append(f"{name}: inside below {inside}x")
            if process and t[1] / m[1] < process * o.slack:
                missed.append(f"{name}: process below {process}x")
            if m[2] > MAX_MB:
                missed.append(f"{name}: above {MAX_MB} MB")
        if o.peer:
            missed += beside_the_peer(o, folder)
        long = os.path.join(folder, "ten.jsonl")
        ten_times(o.trace, long)
        few, many = (medians([ours(o.trace, workers(n, 64, *KV_ROUTER)) for _ in range(5)])[0] for n in (8, 256))
        print(f"KV router: 256 workers cost {many / few:.1f}x what 8 do", flush=True)
        if many / few > MAX_WORKERS_COST / o.slack:
            missed.append(f"KV router: 256 workers cost more than {MAX_WORKERS_COST}x what 8 do")
        for name, arguments, *_ in JOBS:
            pairs = [(ours(o.trace, arguments), ours(long, arguments)) for _ in range(o.runs)]
            growth = statistics.median(b[0] / a[0] for a, b in pairs)
            print(f"{name}: 10x the trace costs {growth:.1f}x inside, peak {medians([b for _, b in pairs])[2]:.0f} MB", flush=True)
            if growth > MAX_GROWTH / o.slack:
                missed.append(f"{name}: 10x the trace costs more than {MAX_GROWTH}x")
    for m in missed:
        print("MISSED", m)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
