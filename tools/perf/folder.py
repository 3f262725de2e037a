"""The table folder: what servegrid reads. Writing is deterministic, so equal measurements give equal bytes.

    <folder>/<system>/configs.csv.gz   one row per deployment, with the ids of its curves and grids
    <folder>/<system>/curves.csv.gz    id, n, x_delta, enc, y      y = 2^(running sum / 2048) ms, or "raw" ms
    <folder>/<system>/grids.csv.gz     id, kind, b, s, measured, q   q: residuals of the planar predictor of 1024 log2(us)
    <folder>/unavailable.csv           what the source refused, and why
    <folder>/checks.csv.gz             whole passes of the source that no fit has seen

An id is the kind's letter and eight hex digits of the SHA-256 of the other columns, joined by "|".
"""
import csv
import gzip
import hashlib
import io
import json
import math
import os

import numpy as np

import fit

CONFIG_COLUMNS = (
    "slot system backend backend_version model hf_path dtype gemm moe kv fmha tp dp moe_tp moe_ep layers weights_bytes "
    "act_bytes_8192 act_bytes_per_token act_min_bytes comm_bytes other_bytes gpu_mem_bytes kv_bytes_per_token kv_bytes_64 "
    "kv_bytes_4096 kv_bytes_131072 mem_fraction max_kv_tokens c_tok c_log g_tok ctx_att gen_att qk_norm_us corrected pre_med "
    "pre_p99 pre_max dec_med dec_p99 dec_max silicon_pct_prefill silicon_pct_decode ref_prefill_1x2048_ms "
    "ref_decode_32x2048_ms generator measured anomaly").split()
KEY_COLUMNS = "slot system backend backend_version hf_path dtype tp dp moe_tp moe_ep corrected".split()
CURVE_COLUMNS = "id n x_delta enc y".split()
GRID_COLUMNS = "id kind b s measured q".split()
CHECK_COLUMNS = KEY_COLUMNS + "kind batch new prefix_or_context ms".split()
UNAVAILABLE_COLUMNS = "slot system backend model dtype par error".split()

CURVE_STEPS, GRID_STEPS = 2048, 1024   # steps an octave
MIN_CURVE_MS, MIN_GRID_US = 1e-6, 1e-3
ANOMALY_FACTOR = 2                      # slower than this many times the best backend: suspicious source data


# ---------------------------------------------------------------- encoding

def content_id(letter, columns):
    return letter + hashlib.sha256("|".join(columns).encode()).hexdigest()[:8]


def joined(numbers):
    return " ".join(str(int(n)) for n in numbers)


def encode_curve(x, y):
    if min(y) <= MIN_CURVE_MS:
        enc, text = "raw", " ".join(f"{v:.6g}" for v in y)
    else:
        enc, text = "log2048", joined(np.diff([round(CURVE_STEPS * math.log2(v)) for v in y], prepend=0))
    x_delta = joined(np.diff(x, prepend=0))
    return [content_id("c", (x_delta, enc, text)), str(len(x)), x_delta, enc, text]


def decode_curve(row):
    x = np.cumsum(numbers(row["x_delta"]))
    y = numbers(row["y"])
    return x, y if row["enc"] == "raw" else np.exp2(np.cumsum(y) / CURVE_STEPS)


def encode_grid(kind, batches, sequences, values, measured):
    steps = np.round(GRID_STEPS * np.log2(np.maximum(values, MIN_GRID_US))).astype(int)
    residuals = np.diff(np.diff(steps, axis=0, prepend=0), axis=1, prepend=0)
    columns = [kind, joined(batches), joined(sequences), joined(measured), joined(residuals.ravel())]
    return [content_id("g", columns)] + columns


def decode_grid(row):
    batches, sequences = numbers(row["b"]), numbers(row["s"])
    residuals = numbers(row["q"]).reshape(len(batches), len(sequences))
    return row["kind"], batches, sequences, np.exp2(residuals.cumsum(axis=0).cumsum(axis=1) / GRID_STEPS)


def numbers(text):
    return np.array(text.split(), float)


# ---------------------------------------------------------------- reading and writing files

def read_csv(path):
    if not os.path.exists(path):
        return []
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as f:
        return list(csv.DictReader(f))


def write_csv(path, columns, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    data = text.getvalue().encode()
    if path.endswith(".gz"):
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as z:
            z.write(data)
        data = packed.getvalue()
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.replace(path + ".new", path)


def key_of(row):
    return tuple(str(row[k]) for k in KEY_COLUMNS)


def refusal_key(row, backend_version):
    """How unavailable.csv names a deployment; legacy rows carry the version that was asked for."""
    backend = row["backend"] if row["slot"] == "current" else f"{row['backend']} {backend_version}"
    par = json.dumps({k: int(row[k]) for k in ("tp", "dp", "moe_tp", "moe_ep")})
    return row["slot"], row["system"], backend, row["model"], row["dtype"], par


class Results:
    """What one run of the generator measured for one system and backend."""

    def __init__(self):
        self.configs, self.curves, self.grids, self.checks, self.unavailable = [], {}, {}, [], []

    def curve(self, x, y):
        row = encode_curve(x, y)
        self.curves[row[0]] = row
        return row[0]

    def grid(self, *arguments):
        row = encode_grid(*arguments)
        self.grids[row[0]] = row
        return row[0]


def known_deployments(folder, generator):
    """Keys of rows that this generator wrote, and (slot, system, backend, model, dtype, par) of what it could not."""
    rows = [r for s in systems_of(folder) for r in read_csv(f"{folder}/{s}/configs.csv.gz") if r["generator"] == generator]
    refused = read_csv(f"{folder}/unavailable.csv")
    return {key_of(r) for r in rows}, {tuple(r[c] for c in UNAVAILABLE_COLUMNS[:6]) for r in refused}


def systems_of(folder):
    if not os.path.isdir(folder):
        return []
    return sorted(s for s in os.listdir(folder) if os.path.exists(f"{folder}/{s}/configs.csv.gz"))


def merge(folder, system, results):
    """Add results to the folder: rows with the same key are replaced, curves and grids that no row uses are dropped."""
    base = f"{folder}/{system}"
    configs = {key_of(r): r for r in read_csv(f"{base}/configs.csv.gz")}
    configs.update((key_of(r), {c: str(r[c]) for c in CONFIG_COLUMNS}) for r in results.configs)
    rows = [configs[k] for k in sorted(configs)]
    mark_anomalies(rows)
    curves = {r["id"]: [r[c] for c in CURVE_COLUMNS] for r in read_csv(f"{base}/curves.csv.gz")} | results.curves
    grids = {r["id"]: [r[c] for c in GRID_COLUMNS] for r in read_csv(f"{base}/grids.csv.gz")} | results.grids
    used = {i for r in rows for i in curve_ids(r) + [g for g, _, _ in attention_terms(r)]}
    write_csv(f"{base}/curves.csv.gz", CURVE_COLUMNS, [curves[i] for i in sorted(curves) if i in used])
    write_csv(f"{base}/grids.csv.gz", GRID_COLUMNS, [grids[i] for i in sorted(grids) if i in used])
    write_csv(f"{base}/configs.csv.gz", CONFIG_COLUMNS, [[r[c] for c in CONFIG_COLUMNS] for r in rows])
    merge_checks(folder, results)
    merge_unavailable(folder, results)


def merge_checks(folder, results):
    path = f"{folder}/checks.csv.gz"
    replaced = {key_of(r) for r in results.configs}
    rows = [r for r in read_csv(path) if key_of(r) not in replaced] + results.checks
    rows.sort(key=key_of)
    write_csv(path, CHECK_COLUMNS, [[r[c] for c in CHECK_COLUMNS] for r in rows])


def merge_unavailable(folder, results):
    path = f"{folder}/unavailable.csv"
    rows = {tuple(r[c] for c in UNAVAILABLE_COLUMNS[:6]): r["error"] for r in read_csv(path)}
    for config in results.configs:
        rows.pop(refusal_key(config, config["backend_version"]), None)
    rows.update((tuple(r[:6]), r[6]) for r in results.unavailable)
    if rows:
        write_csv(path, UNAVAILABLE_COLUMNS, [[*k, rows[k]] for k in sorted(rows)])


def mark_anomalies(rows):
    """Mark rows that are far slower than the best backend for the same deployment."""
    peers = "slot system hf_path dtype tp dp moe_tp moe_ep".split()
    references = ("ref_prefill_1x2048_ms", "ref_decode_32x2048_ms")
    best = {}
    for r in rows:
        for reference in references:
            at = (*(r[k] for k in peers), reference)
            best[at] = min(best.get(at, math.inf), float(r[reference]))
    for r in rows:
        slow = any(float(r[ref]) > ANOMALY_FACTOR * best[(*(r[k] for k in peers), ref)] for ref in references)
        r["anomaly"] = str(int(slow))


# ---------------------------------------------------------------- pricing with a row

def curve_ids(row):
    return [row["c_tok"], row["c_log"], row["g_tok"]]


def attention_terms(row):
    """(grid id, multiplicity, constant in us per layer) of every attention term, prefill first."""
    terms = []
    for column in ("ctx_att", "gen_att"):
        for term in filter(None, row[column].split(";")):
            grid, rest = term.split("*")
            multiplicity, _, constant = rest.partition("+")
            terms.append((grid, float(multiplicity), float(constant or 0)))
    return terms


class Prices:
    """Whole passes priced with one row, in ms; arguments are arrays. A source that leaves out qk-norm leaves it out here."""

    def __init__(self, row, curves, grids):
        self.tokens, self.requests, self.generation = (curves[i] for i in curve_ids(row))
        terms = [(grids[g], m * 1e-3, c) for g, m, c in attention_terms(row)]
        self.context = [t for t in terms if t[0][0] == "ctx"]
        self.decoding = [t for t in terms if t[0][0] == "gen"]

    def prefill(self, batch, new, prefix):
        batch, new, prefix = (np.asarray(a, float) for a in (batch, new, prefix))
        full = new + prefix
        total = fit.curve_at(*self.tokens, batch * new) + fit.curve_at(*self.requests, batch)
        for grid, ms, constant in self.context:
            total = total + ms * (fit.grid_at(*grid, batch, full) * (1 - (prefix / full) ** 2) + constant)
        return total

    def decode(self, batch, context):
        batch, context = np.asarray(batch, float), np.asarray(context, float)
        total = fit.curve_at(*self.generation, batch)
        for grid, ms, _ in self.decoding:
            total = total + ms * fit.grid_at(*grid, batch, context + 1)
        return total


def load_system(folder, system):
    """All rows of a system with their prices: [(row, Prices)]."""
    base = f"{folder}/{system}"
    curves = {r["id"]: decode_curve(r) for r in read_csv(f"{base}/curves.csv.gz")}
    grids = {r["id"]: decode_grid(r) for r in read_csv(f"{base}/grids.csv.gz")}
    return [(r, Prices(r, curves, grids)) for r in read_csv(f"{base}/configs.csv.gz")]
