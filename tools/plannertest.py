#!/usr/bin/env python3
"""Differential test of the planner: seeded random runs through the reference 1.3.1 and through servegrid.

  tools/setup_reference.sh DIR           # once: a virtual environment with the reference in DIR
  DIR/bin/pip install --target PKGS scikit-learn filterpy pmdarima prophet statsmodels plotly    # once: what its planner imports
  DIR/bin/python tools/plannertest.py --servegrid ./servegrid --packages PKGS --seed 1 --cases 20

A case is a made trace whose arrivals rise and fall, a planner configuration, and a deployment, aggregated or in pools. Scaling
events, ticks and every number of the report must agree, to --rel. The reference decides by the order of a hash map now and
then: a case that does not agree is run --repeats times, and counts as random there when its runs differ from each other.
Failing cases are kept in --keep. Exit status: 0 all agree or are random, 1 some do not.
"""
import argparse, json, math, os, random, re, shutil, subprocess, sys, tempfile

STUB = "class PrometheusConnect: pass\n"  # an import of the reference that a replay never uses
PATIENCE_S = 300
WALL = ("wall", "processed_")  # figures of the machine


def make_trace(rng, path):
    mean, period, duration = rng.choice((2, 3, 4)), rng.choice((60, 100, 200)), rng.choice((100, 150, 200))
    swing, t, fresh, rows = mean * rng.uniform(0.4, 0.95), 0.0, 1000, []
    while True:
        t += rng.expovariate(mean + swing)
        if t >= duration:
            break
        if rng.random() * (mean + swing) > mean - swing * math.cos(2 * math.pi * t / period):
            continue
        length = int(min(60000, max(500, rng.lognormvariate(math.log(10000), 0.6))))
        blocks, system = (length + 511) // 512, rng.randrange(20)
        ids = [system * 10 + k for k in range(min(4, blocks))]
        while len(ids) < blocks:
            ids.append(fresh)
            fresh += 1
        rows.append({"timestamp": int(t * 1000), "input_length": length, "hash_ids": ids,
                     "output_length": int(min(400, max(10, rng.lognormvariate(math.log(90), 0.6))))})
    with open(path, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)


def make_case(rng, mode):
    kind = rng.choice(("both", "both", "load only", "throughput only", "load", "throughput", "latency"))
    load = rng.choice((5, 10, 15))
    c = {"mode": mode, "ttft": rng.choice((500, 1500, 3000)), "itl": rng.choice((10, 20, 50, 80)), "load_adjustment_interval": load,
         "prefill_engine_num_gpu": 1, "decode_engine_num_gpu": 1, "load_predictor": rng.choice(("constant", "kalman"))}
    engine = {"startup_time": rng.choice((3, 10, 15, 30, 60))} if rng.random() < 0.6 else {}
    if kind in ("both", "load only", "throughput only"):
        c.update(optimization_target="sla", enable_throughput_scaling=kind != "load only", enable_load_scaling=kind != "throughput only",
                 throughput_adjustment_interval=load * rng.choice((2, 3, 6)) + rng.choice((0, 0, 5)))
    else:
        c["optimization_target"] = kind
        engine["num_gpu_blocks"] = rng.choice((2048, 4096))
    if kind == "load":
        c.update(decode_scale_up_kv_rate=rng.choice((40, 60, 80)), decode_scale_down_kv_rate=rng.choice((10, 20, 35)),
                 prefill_scale_up_queue_tokens=rng.choice((8000, 20000)), prefill_scale_down_queue_tokens=rng.choice((0, 1000)))
    for chance, key, values in ((0.3, "min_endpoint", (2,)), (0.3, "max_gpu_budget", (4, 5)), (0.2, "min_gpu_budget", (2,)),
                                (0.3, "load_scaling_down_sensitivity", (50, 95)), (0.3, "max_num_fpm_samples", (32, 128))):
        if rng.random() < chance:
            c[key] = rng.choice(values)
    workers = [str(rng.choice((1, 2, 3))) for _ in range(2)]
    if mode == "agg":
        return c, ["--extra-engine-args", json.dumps(engine), "--num-workers", workers[0]]
    return c, ["--prefill-engine-args", json.dumps({**engine, "worker_type": "prefill"}), "--num-prefill-workers", workers[0],
               "--decode-engine-args", json.dumps({**engine, "worker_type": "decode"}), "--num-decode-workers", workers[1]]


def run(command, folder, config, trace, options, env):
    """Returns events and tick count as printed, and the report."""
    os.makedirs(folder)
    config = {**config, "report_output_dir": folder, "report_filename": "planner.html"}
    report = os.path.join(folder, "report.json")
    done = subprocess.run([*command, trace, "--planner-config", json.dumps(config), *options, "--report-json", report], cwd=folder,
                          env={**os.environ, **env, "HOME": folder}, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        return [done.stderr[-500:]], {}
    with open(report) as f:
        return re.findall(r"^  t=.*$|^Planner ticks: .*$", done.stdout, re.M), json.load(f)


def differences(ours, theirs, rel):
    out = [] if ours[0] == theirs[0] else ["events:\n    " + "\n    ".join(ours[0]) + "\n  reference:\n    " + "\n    ".join(theirs[0])]
    for key, want in theirs[1].items():
        got = ours[1].get(key)
        numbers = isinstance(want, (int, float)) and isinstance(got, (int, float)) and not any(w in key for w in WALL)
        if numbers and abs(got - want) > rel * abs(want):
            out.append(f"{key} is {got}, want {want}")
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--servegrid", required=True)
    p.add_argument("--packages", required=True, help="folder with the packages that the reference's planner imports")
    p.add_argument("--mode", choices=("agg", "disagg"), default="agg")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=20)
    p.add_argument("--repeats", type=int, default=4)
    p.add_argument("--rel", type=float, default=1e-6)
    p.add_argument("--keep", default="planner-failures")
    a = p.parse_args()
    work, failed, chance = tempfile.mkdtemp(), 0, 0
    os.makedirs(os.path.join(work, "stub"))
    with open(os.path.join(work, "stub", "prometheus_api_client.py"), "w") as f:
        f.write(STUB)
    # The packages come after the reference's own, which may need other versions.
    start = f"import sys, runpy; sys.path.append({os.path.abspath(a.packages)!r}); sys.argv[0] = 'replay'; runpy.run_module('dynamo.replay', run_name='__main__')"
    reference, ref_env = [sys.executable, "-c", start], {"PYTHONPATH": os.path.join(work, "stub"), "DYN_LOG": "error"}
    for n in range(a.cases):
        rng = random.Random(f"{a.seed}/{a.mode}/{n}")
        folder = os.path.join(work, str(n))
        os.makedirs(folder)
        trace = os.path.join(folder, "trace.jsonl")
        make_trace(rng, trace)
        config, options = make_case(rng, a.mode)
        ours = run([os.path.abspath(a.servegrid), "replay", "--compat", "dynamo-1.3"], os.path.join(folder, "ours"), config, trace, options, {})
        runs = [run(reference, os.path.join(folder, "ref0"), config, trace, options, ref_env)]
        found = differences(ours, runs[0], a.rel)
        while found and len(runs) < a.repeats:
            runs.append(run(reference, os.path.join(folder, f"ref{len(runs)}"), config, trace, options, ref_env))
            found = min(found, differences(ours, runs[-1], a.rel), key=len)
        if found and any(differences(r, runs[0], a.rel) for r in runs):
            chance += 1
            print(f"case {n}: the reference differs from itself, and never agrees")
        elif found:
            failed += 1
            shutil.copytree(folder, os.path.join(a.keep, f"{a.seed}-{a.mode}-{n}"), dirs_exist_ok=True)
            print(f"case {n}: {json.dumps(config)} {options}\n  " + "\n  ".join(found[:8]))
        else:
            print(f"case {n}: {len(ours[0]) - 1} events, equal")
        shutil.rmtree(folder)
    shutil.rmtree(work)
    print(f"{a.cases - failed - chance} of {a.cases} agree, {chance} are random in the reference, {failed} do not agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
