#!/usr/bin/env python3
"""What the KV router does on a trace: a closed-loop sweep of 1 to 256 sessions on eight workers, round robin beside the KV router.

  tools/routing.py --servegrid ./servegrid --trace conversation_trace.jsonl [--reference FOLDER]

Fails unless KV routing reuses more of the prompts at every concurrency of 8 and above. --reference is a folder of reports of the
reference, kv-CONCURRENCY-RUN.json and rr-CONCURRENCY.json, of the same command; their means and spreads are printed beside ours.
"""
import argparse, glob, json, os, statistics, subprocess, tempfile

FIGURES = ("prefix_cache_reused_ratio", "mean_ttft_ms", "mean_itl_ms", "output_throughput_tok_s")


def replay(servegrid, trace, concurrency, policy, seed, folder):
    path = os.path.join(folder, "report.json")
    seeds = ["--set", f"router.seed={seed}"] if policy == "kv_router" else []
    subprocess.run([servegrid, "replay", "--compat", "dynamo-1.3", trace, "--num-workers", "8", "--router-mode", policy,
                    "--replay-concurrency", str(concurrency), "--extra-engine-args", '{"block_size":64}',
                    *seeds, "--report-json", path], check=True, stdout=subprocess.DEVNULL)
    with open(path) as f:
        return json.load(f)


def spread(reports, figure):
    values = [r[figure] for r in reports]
    return f"{statistics.mean(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--servegrid", required=True)
    ap.add_argument("--trace", required=True)
    ap.add_argument("--reference")
    o = ap.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        print("| sessions | reuse, round robin | KV router | mean TTFT, round robin | KV router |\n|---|---|---|---|---|")
        for concurrency in [2**i for i in range(9)]:
            rr, kv = (replay(o.servegrid, o.trace, concurrency, p, 42, folder) for p in ("round_robin", "kv_router"))
            print(f"| {concurrency} | {rr[FIGURES[0]]:.3f} | {kv[FIGURES[0]]:.3f} | {rr[FIGURES[1]]:.0f} ms | {kv[FIGURES[1]]:.0f} ms |")
            if concurrency >= 8 and kv[FIGURES[0]] <= rr[FIGURES[0]]:
                missed.append(concurrency)
        for concurrency in (8, 32, 128) if o.reference else ():
            theirs = [json.load(open(p)) for p in sorted(glob.glob(os.path.join(o.reference, f"kv-{concurrency}-*.json")))]
            ours = [replay(o.servegrid, o.trace, concurrency, "kv_router", seed, folder) for seed in range(len(theirs))]
            for figure in FIGURES:
                print(f"| {concurrency} | {figure} | {spread(theirs, figure)} | {spread(ours, figure)} |")
    if missed:
        raise SystemExit(f"the KV router reuses no more than round robin with {missed} sessions in flight")


main()
