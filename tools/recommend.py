#!/usr/bin/env python3
"""The same study by servegrid and by the newest peer: its `aisimulate recommend` on a trace with timing tables.

  python3 tools/recommend.py --servegrid ./servegrid --peer DIR/bin/aisimulate --trace conversation_trace.jsonl

The peer draws some of the space's configurations at random; servegrid simulates all of them. Both frontiers (throughput per GPU
against speed per user) are then priced by both simulators: the peer's by servegrid's table, servegrid's by `aisimulate
predict`. Exit status 1 unless a point costs servegrid a hundredth of the processor time, process start included, and under
both prices each point of the peer's frontier is matched by one of servegrid's that is as good in both figures. With --work DIR
what the peer did is kept and used again. On a busy machine the peer takes many minutes; --rows 300 --trials 4 is a small form.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

# The space: both spell it their own way.
TP, WORKERS, TOKENS, SEQS = [1, 2, 4], [1, 2, 4, 8], [4096, 8192, 16384], [64, 256]
GPUS, MODEL, GPU = 8, "meta-llama/Meta-Llama-3.1-8B", "h200_sxm"
OBJECTIVES = ["output_throughput_tok_s_per_gpu", "mean_output_token_throughput_per_user"]
FASTER = 100

SPEC = """
name: study
workload: {trace: {path: TRACE, format: mooncake, block_size: 512}}
engine: {type: vllm, block_size: 64}
timing: {gpu: %s, model: %s, backend: vllm}
grid:
  timing.tp: %s
  deployment.workers: %s
  engine.max_num_batched_tokens: %s
  engine.max_num_seqs: %s
exclude: ["gpus > %d"]
""" % (GPU, MODEL, TP, WORKERS, TOKENS, SEQS, GPUS)

KEY = ["tp", "workers", "max_num_batched_tokens", "max_num_seqs"]


def peer_config(tp, workers, tokens, seqs, **parallelism):
    return {
        "traffic": {"source": {"type": "trace", "format": "mooncake", "paths": ["trace.jsonl"], "block_size": 512},
                    "load": {"type": "trace_timestamps"}},
        "engine": {"mode": "aggregated", "model": MODEL, "hardware": GPU, "backend": "vllm", "workers": {"aggregated": {
            "parallelism": {"replicas": workers, "tensor": tp, "pipeline": 1, "attention_data": 1, "moe_tensor": 1, "moe_expert": 1,
                            **parallelism},
            "scheduler": {"max_batched_tokens": tokens, "max_sequences": seqs},
            "kv_cache": {"block_size": 64, "prefix_caching": True}}}},
        "execution": {"resources": {"initialization_timeout_seconds": 600.0, "shutdown_timeout_seconds": 600.0}},  # a busy machine
    }


def peer_study(trials, seed):
    domains = [{"choices": values} for values in (TP, WORKERS, TOKENS, SEQS)]
    return peer_config(*domains, preset=False) | {
        "optimization": {"target": "pareto", "constraints": {"max_candidate_gpus": GPUS}},
        "optimizer": {"algorithm": "random", "max_trials": trials, "parallelism": 2, "seed": seed},
    }


def run(argv, cwd):
    """Runs a command; returns its seconds, and those of all cores."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}\n{done.stdout[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recommend(options, work):
    """The peer's study: seconds, and each candidate's key and figures, with those on its frontier."""
    out = os.path.join(work, "peer")
    took = os.path.join(work, "peer-seconds.json")
    if not os.path.exists(took):
        with open(os.path.join(work, "peer.yaml"), "w") as f:
            json.dump(peer_study(options.trials, options.seed), f)  # JSON is YAML
        seconds = run([options.peer, "recommend", "-c", "peer.yaml", "--output-dir", out, "--overwrite", "--format", "json"], work)
        with open(took, "w") as f:
            json.dump(seconds, f)
    with open(os.path.join(out, "recommendation.json")) as f:
        study = json.load(f)
    priced = {}
    for c in study["candidates"]:
        if c["status"] != "feasible":
            continue
        worker = c["prediction_config"]["engine"]["workers"]["aggregated"]
        key = (worker["parallelism"]["tensor"], worker["parallelism"]["replicas"],
               worker["scheduler"]["max_batched_tokens"], worker["scheduler"]["max_sequences"])
        priced[key] = peer_figures(c["metrics"], key)
    with open(took) as f:
        return json.load(f), len(study["candidates"]), priced


def peer_figures(metrics, key):
    return (metrics["output_throughput_tok_s"] / (key[0] * key[1]), metrics["mean_output_token_throughput_per_user"])


def predict(options, work, key):
    """The peer's figures of one configuration."""
    name = "-".join(map(str, key))
    out = os.path.join(work, "predicted", name)
    report = os.path.join(out, "prediction.json")
    if not os.path.exists(report):
        with open(os.path.join(work, name + ".yaml"), "w") as f:
            json.dump(peer_config(*key), f)
        run([options.peer, "predict", "-c", name + ".yaml", "--output-dir", out, "--overwrite"], work)
    with open(report) as f:
        return peer_figures(find_metrics(json.load(f)), key)


def find_metrics(report):
    """The dictionary of figures, wherever the report has it."""
    if isinstance(report, dict):
        if "output_throughput_tok_s" in report:
            return report
        for v in report.values():
            found = find_metrics(v)
            if found:
                return found
    return None


def sweep(options, work):
    """servegrid's study: seconds, and each point's key and figures."""
    with open(os.path.join(work, "grid.yaml"), "w") as f:
        f.write(SPEC.replace("TRACE", "trace.jsonl"))
    seconds = run([options.servegrid, "sweep", "grid.yaml", "--quiet", "--fresh", "--output", "ours", "--format", "json"], work)
    with open(os.path.join(work, "ours", "results.json")) as f:
        rows = json.load(f)
    return seconds, {tuple(r[k] for k in KEY): tuple(r[o] for o in OBJECTIVES) for r in rows if r["status"] == "ok"}


def frontier(priced):
    """The keys that no other dominates."""
    return [k for k, v in priced.items()
            if not any(all(b >= a for a, b in zip(v, w)) and w != v for w in priced.values())]


def unmatched(theirs, ours):
    """The points of theirs that no point of ours is as good as."""
    return [k for k, v in theirs.items() if not any(all(b >= a for a, b in zip(v, w)) for w in ours.values())]


def hypervolume(priced):
    area, best = 0.0, 0.0
    for x, y in sorted(priced.values(), reverse=True):
        area += x * max(0, y - best)
        best = max(best, y)
    return area


def compare(name, theirs, ours):
    missed = unmatched(theirs, ours)
    print(f"priced by {name}: hypervolume of servegrid's frontier {hypervolume(ours) / hypervolume(theirs):.4f} of the peer's, "
          f"{len(missed)} of the peer's {len(theirs)} points not matched")
    for k in missed:
        print("   not matched:", dict(zip(KEY, k)), theirs[k])
    return not missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servegrid", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--trace", required=True, help="a Mooncake trace")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", help="folder to keep what was done")
    options = parser.parse_args()
    options.servegrid, options.peer = (os.path.abspath(p) for p in (options.servegrid, options.peer))
    with tempfile.TemporaryDirectory() as scratch:
        work = os.path.abspath(options.work or scratch)
        os.makedirs(work, exist_ok=True)
        with open(options.trace) as src, open(os.path.join(work, "trace.jsonl"), "w") as dst:
            dst.writelines(line for _, line in zip(range(options.rows), src))
        return study(options, work)


def report(who, points, seconds):
    wall, cpu = seconds
    print(f"{who}: {points} points, {wall:.2f} s, {cpu:.2f} s of processor time; {cpu / points:.4f} s each")


def study(options, work):
    peer_seconds, trials, peer = recommend(options, work)
    our_seconds, ours = sweep(options, work)
    report("peer", trials, peer_seconds)
    report("servegrid, all there are", len(ours), our_seconds)
    wall, cpu = ((theirs / trials) / (own / len(ours)) for theirs, own in zip(peer_seconds, our_seconds))
    ok = cpu >= FASTER
    print(f"a point costs servegrid 1/{wall:.0f} of the time and 1/{cpu:.0f} of the processor time" + ("" if ok else f"; missed: 1/{FASTER}"))
    off = [abs(ours[k][i] / v[i] - 1) for k, v in peer.items() for i in (0, 1)]
    print(f"the two simulators differ by {100 * max(off):.2f} % at most in these figures, {100 * sorted(off)[len(off) // 2]:.2f} % in the median")
    their_front, our_front = frontier(peer), frontier(ours)
    ok &= compare("servegrid", {k: ours[k] for k in their_front}, {k: ours[k] for k in our_front})
    ok &= compare("the peer", {k: peer[k] for k in their_front}, {k: predict(options, work, k) for k in our_front})
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
