#!/usr/bin/env python3
"""Measure a performance model that is installed here and write tables of step times that servegrid reads.

    pip install aiconfigurator-core
    python tools/perf/generate.py my-tables --only h200_sxm/vllm/current/qwen3-32b
    servegrid perf import my-tables --output tables

Without --only it measures every deployment of matrix.py, about half a second each. A model of your own:

    python tools/perf/generate.py my-tables --model Qwen/Qwen3-1.7B --dtype bf16 --tp 1,2,4 --only h100_sxm/sglang

The package is used as a black box: this script calls its engine with arguments and fits curves and grids to the answers.
The tables that servegrid carries were made by three runs into one folder, each with the package named installed:

    generate.py FOLDER                                              aiconfigurator-core 0.12.0
    generate.py FOLDER --package aisimulate_core --corrected        AISimulate 0.13, for what 0.12.0 gets wrong
    generate.py FOLDER --package aiconfigurator --legacy            aiconfigurator 0.10.0

A run adds to the folder: deployments that it measured again replace their older rows. With --resume it skips those that
this version of the package has answered already. check.py reports how far the tables are from the package.
"""
import argparse
import concurrent.futures
import datetime
import math
import random
import sys
import time

import numpy as np

import engines
import fit
import folder
import matrix
import walk

HELD_OUT, CHECKS_KEPT = 400, 6
# us per layer and decode pass that a version of a package leaves out for models that normalise queries and keys.
# Measured against AISimulate 0.13, which has it; `check.py qk-norm` repeats the measurement.
MISSING_QK_NORM_US = {"aiconfigurator-core 0.12.0": 26.41}
ERROR_LENGTH = 160


# ---------------------------------------------------------------- one deployment

def measure(task, variant, par, source, results, grids, walked):
    """Measure one deployment and add its row, curves, grids and checks to results."""
    deployment = source.deploy(task.system, task.backend, task.version, variant, par)
    if walk.VERSIONS & {(task.backend, task.version)}:
        parts = walk.WalkParts(deployment, walked)
    else:
        parts = deployment.parts()
    row = {
        "slot": task.slot, "system": task.system, "backend": task.backend, "backend_version": deployment.backend_version,
        "model": variant.name, "hf_path": variant.hf_path, "dtype": variant.dtype, **deployment.formats(), "tp": par.tp,
        "dp": par.dp, "moe_tp": par.moe_tp, "moe_ep": par.moe_ep, "layers": deployment.model._num_layers,
        **deployment.memory(), "corrected": int(task.corrected),
        "qk_norm_us": MISSING_QK_NORM_US.get(source.label, 0) if deployment.normalises_qk() else 0,
        "generator": source.label, "measured": datetime.date.today().isoformat()}
    row.update(fit_curves(parts, results))
    row.update(fit_attention(parts, results, grids))
    row["silicon_pct_prefill"], row["silicon_pct_decode"] = parts.measured_share()
    row["ref_prefill_1x2048_ms"] = f"{parts.whole_prefill(1, 2048, 0):.5g}"
    row["ref_decode_32x2048_ms"] = f"{parts.whole_decode(32, 2048):.5g}"
    row["anomaly"] = 0
    row.update(check_row(row, parts, results))
    results.configs.append(row)
    return row


def fit_curves(parts, results):
    xs, requests, batches = (fit.token_samples(n) for n in (fit.MAX_TOKENS, fit.MAX_REQUESTS, fit.MAX_DECODE_BATCH))
    flat = lambda x, tolerance: np.full(len(x), tolerance)
    return {
        "c_tok": results.curve(*fit.fit_curve(xs, parts.tokens(xs), fit.token_tolerance(xs), fit.POWERS_OF_TWO)),
        "c_log": results.curve(*fit.fit_curve(requests, parts.requests(requests), flat(requests, fit.REQUESTS_TOLERANCE))),
        "g_tok": results.curve(*fit.fit_curve(batches, parts.generation(batches), flat(batches, fit.CURVE_TOLERANCE),
                                              fit.POWERS_OF_TWO + fit.SMALL_BATCHES))}


def fit_attention(parts, results, grids):
    """Columns ctx_att and gen_att. grids keeps what was fitted for equal attention of another deployment."""
    columns = {}
    for column, kind, terms, high in (("ctx_att", "ctx", parts.context, fit.MAX_PREFILL_BATCH),
                                      ("gen_att", "gen", parts.decoding, fit.MAX_DECODE_BATCH)):
        texts = []
        for term in terms:
            probes = ((1, 512), (3, 1000), (8, 4096), (32, 777), (1, 30000), (200, 5000))
            look = (kind, *(f"{term.value(b, s):.6g}" for b, s in probes))
            if look not in grids:
                grids[look] = sample_and_fit(kind, term, high, parts)
            text = f"{results.grid(*grids[look])}*{term.layers:g}"
            texts.append(text + (f"+{term.constant:.6g}" if kind == "ctx" else ""))
        columns[column] = ";".join(texts)
    return columns


def sample_and_fit(kind, term, high, parts):
    batches = fit.batch_samples(high)
    sequences = fit.sequence_samples(kind, parts.sequences_per_octave) if term.sequences is None else term.sequences
    values = np.array([sample_row(kind, term, int(b), sequences) for b in batches])
    b, s, v = fit.fit_grid(kind, batches, sequences, values, parts.grid_floor_us(kind, batches))
    measured = [min(fit.measured_frontier(kind, term.value, int(x)), sequences[-1]) for x in b]
    return kind, b, s, v, measured


def sample_row(kind, term, batch, sequences):
    """Values of one batch. Beyond what passes hold tolerances are wide and sources slow, so only every fourth is asked there."""
    asked = [i for i, s in enumerate(sequences) if batch * s <= fit.GRID_SURE_TOKENS or i % 4 == 0 or i == len(sequences) - 1]
    values = np.array([term.value(batch, int(sequences[i])) for i in asked])
    if kind == "ctx":
        return np.interp(sequences, sequences[asked], np.sqrt(values)) ** 2
    return np.interp(sequences, sequences[asked], values)


# ---------------------------------------------------------------- whole passes that no fit has seen

def held_out_points(seed, longest=fit.MAX_SEQUENCE):
    """Prefill (batch, new, prefix) and decode (batch, context) arguments, log-uniform inside what GPUs hold.

    longest: most tokens of a prefill request, cached ones included.
    """
    rng = random.Random(seed)
    between = lambda low, high: round(math.exp(rng.uniform(math.log(low), math.log(high))))
    prefill, decode = [], []
    while len(prefill) < HELD_OUT:
        b, s, p = between(1, 64), between(1, 16384), 0 if rng.random() < 0.4 else between(16, 131072)
        if b * s <= 32768 and b * (s + p) <= 1 << 21 and s + p <= longest:
            prefill.append((b, s, p))
    while len(decode) < HELD_OUT:
        b, s = between(1, 512), between(8, 131072)
        if b * s <= 1 << 23:
            decode.append((b, s))
    return prefill, decode


def check_row(row, parts, results):
    """Error figures of the row, in percent, and a few of the points for checks.csv.gz."""
    curves = {i: folder.decode_curve(dict(zip(folder.CURVE_COLUMNS, results.curves[i]))) for i in folder.curve_ids(row)}
    grids = {g: folder.decode_grid(dict(zip(folder.GRID_COLUMNS, results.grids[g]))) for g, _, _ in folder.attention_terms(row)}
    prices = folder.Prices(row, curves, grids)
    prefill, decode = held_out_points(repr(folder.key_of(row)), parts.longest_check)
    figures = {}
    for kind, short, points, price, ask in (("prefill", "pre", prefill, prices.prefill, parts.whole_prefill),
                                            ("decode", "dec", decode, prices.decode, parts.whole_decode)):
        want = np.array([ask(*p) for p in points])
        errors = 100 * np.abs(price(*np.array(points).T) - want) / want
        figures.update({f"{short}_med": f"{np.median(errors):.4g}", f"{short}_p99": f"{np.percentile(errors, 99):.4g}",
                        f"{short}_max": f"{errors.max():.4g}"})
        for point, ms in list(zip(points, want))[:CHECKS_KEPT]:
            arguments = point if kind == "prefill" else (point[0], 1, point[1])
            results.checks.append({**{k: str(row[k]) for k in folder.KEY_COLUMNS}, "kind": kind,
                                   **dict(zip(("batch", "new", "prefix_or_context"), arguments)), "ms": f"{ms:.6g}"})
    return figures


# ---------------------------------------------------------------- all deployments

class Task:
    """All deployments of one system, backend and version."""

    def __init__(self, slot, system, backend, version, corrected, deployments):
        self.slot, self.system, self.backend, self.version, self.corrected = slot, system, backend, version, corrected
        self.deployments = deployments

    def tag(self, variant, par):
        return (f"{self.system}/{self.backend}/{self.version}/{variant.name}/{variant.dtype}/"
                f"tp{par.tp}-dp{par.dp}-moe_tp{par.moe_tp}-moe_ep{par.moe_ep}")

    def refusal(self, variant, par):
        row = {"slot": self.slot, "system": self.system, "backend": self.backend, "model": variant.name, "dtype": variant.dtype}
        return folder.refusal_key({**row, **vars(par)}, self.version)


def tasks_of(options):
    variants = own_variants(options) if options.model else matrix.VARIANTS
    if options.legacy:
        places = [("legacy", s, b, v) for s in matrix.LEGACY_SYSTEMS for b, v in matrix.LEGACY_VERSIONS]
    else:
        places = [("current", s, b, "current") for s in matrix.SYSTEMS for b in matrix.BACKENDS]
    tasks = []
    for slot, system, backend, version in places:
        task = Task(slot, system, backend, version, options.corrected, [])
        for variant in variants:
            if system not in variant.systems or (options.legacy and not variant.legacy):
                continue
            if options.corrected and not (backend == "vllm" and variant.dtype == "fp8_block"):
                continue
            task.deployments += [(variant, p) for p in variant.parallelisms
                                 if not (options.legacy and p.dp > 1) and all(o in task.tag(variant, p) for o in options.only)]
        if task.deployments:
            tasks.append(task)
    return tasks


def own_variants(options):
    name = options.name or options.model.split("/")[-1].lower()
    return (matrix.Variant(name, options.model, options.dtype, matrix.dense(*options.tp)),)


def run_task(task, package, verbose):
    """Measure every deployment of a task; runs in a process of its own."""
    source = engines.Source(package)
    results, grids, walked = folder.Results(), {}, {}
    for variant, par in task.deployments:
        start = time.monotonic()
        try:
            row = measure(task, variant, par, source, results, grids, walked)
            outcome = "prefill {pre_med}/{pre_p99}/{pre_max} decode {dec_med}/{dec_p99}/{dec_max} %".format(**row)
        except Exception as e:  # whatever the package raises says why there is no answer
            outcome = " ".join(str(e).replace(source.root, "").split())[:ERROR_LENGTH]
            if not task.corrected:
                results.unavailable.append([*task.refusal(variant, par), outcome])
        if verbose:
            print(f"{time.monotonic() - start:6.2f} s {task.tag(variant, par)} {outcome}", file=sys.stderr, flush=True)
    return task, results


def without_known(tasks, out, source):
    keys, refused = folder.known_deployments(out, source.label)
    for task in tasks:
        known = lambda v, p: (task.refusal(v, p) in refused or any(
            k[:3] == (task.slot, task.system, task.backend) and (task.slot == "current" or k[3] == task.version)
            and k[4:] == (v.hf_path, v.dtype, str(p.tp), str(p.dp), str(p.moe_tp), str(p.moe_ep), str(int(task.corrected)))
            for k in keys))
        task.deployments = [(v, p) for v, p in task.deployments if not known(v, p)]
    return [t for t in tasks if t.deployments]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="table folder to make or to add to")
    parser.add_argument("--package", default="aiconfigurator_core", help="installed package to measure (%(default)s)")
    parser.add_argument("--only", default="", help="parts of SYSTEM/BACKEND/VERSION/MODEL/DTYPE/tpN-dpN-moe_tpN-moe_epN, "
                        "comma separated: measure only what contains all of them")
    parser.add_argument("--model", help="Hugging Face name of a dense model that matrix.py does not have")
    parser.add_argument("--name", help="short name of that model (default: the last part of --model)")
    parser.add_argument("--dtype", default="bf16", help="label of that model's number format (%(default)s)")
    parser.add_argument("--tp", default="1,2,4,8", help="tensor parallel sizes of that model (%(default)s)")
    parser.add_argument("--legacy", action="store_true", help="the backend versions that older simulators pin (aiconfigurator 0.10)")
    parser.add_argument("--corrected", action="store_true",
                        help="vLLM fp8_block rows, marked to replace those of another package when corrections are on")
    parser.add_argument("--jobs", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="skip what this version of the package has answered already")
    parser.add_argument("--quiet", action="store_true", help="no line for each deployment")
    options = parser.parse_args()
    options.only = [o for o in options.only.split(",") if o]
    options.tp = [int(t) for t in options.tp.split(",")]
    return options


def main():
    options = arguments()
    try:
        source = engines.Source(options.package)
    except ImportError as e:
        sys.exit(f"cannot use package {options.package}: {e}; install it (pip install aiconfigurator-core) or name another with --package")
    tasks = tasks_of(options)
    if not tasks:
        sys.exit(f"nothing in matrix.py contains all of {', '.join(options.only)}")
    if options.resume:
        tasks = without_known(tasks, options.folder, source)
    start, rows, refused = time.monotonic(), 0, 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_task, t, options.package, not options.quiet) for t in tasks]):
            task, results = done.result()
            if results.configs or results.unavailable:
                folder.merge(options.folder, task.system, results)
            rows, refused = rows + len(results.configs), refused + len(results.unavailable)
            print(f"{time.monotonic() - start:6.0f} s {task.system}/{task.backend}/{task.version}: {len(results.configs)} rows, "
                  f"{len(results.unavailable)} refused", file=sys.stderr, flush=True)
    print(f"{rows} rows from {source.label}, {refused} deployments that it cannot price, in {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
