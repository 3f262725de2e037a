#!/usr/bin/env python3
"""How far are table folders from what they were made from, and from a newer performance model?

    check.py points FOLDER [FOLDER ...] --points golden.csv     whole passes recorded earlier, or the folder's own checks
    check.py peer FOLDER --package aisimulate_core              ask an installed package about every current deployment
    check.py qk-norm FOLDER --package aisimulate_core           what that package adds to a decode pass of a layer

points needs no package. Errors are percent of the whole pass: median, 99th percentile, largest.
"""
import argparse
import collections
import sys

import numpy as np

import engines
import folder
import generate
import matrix

WORTH_LISTING = 1.0  # percent


def prices_of(path, systems=None):
    """{key: (row, Prices)} of all rows of a folder."""
    found = {}
    for system in folder.systems_of(path):
        if systems is None or system in systems:
            found.update((folder.key_of(row), (row, prices)) for row, prices in folder.load_system(path, system))
    return found


def error_figures(errors):
    errors = np.abs(np.array(errors))
    return f"{np.median(errors):8.3f} {np.percentile(errors, 99):8.3f} {errors.max():8.3f}"


# ---------------------------------------------------------------- recorded points

def read_points(path):
    """Points of a file like checks.csv.gz; recorded files may leave out slot and corrected, and call columns by other names."""
    names = {"isl_new": "new", "prefix_or_ctx": "prefix_or_context"}
    points = []
    for row in folder.read_csv(path):
        row = {names.get(k, k): v for k, v in row.items()}
        points.append({"corrected": "0", **row})
    if not points:
        sys.exit(f"{path}: no points there")
    return points


def find_prices(table, point):
    for slot in [point["slot"]] if "slot" in point else ["current", "legacy"]:
        hit = table.get(folder.key_of({**point, "slot": slot}))
        if hit:
            return hit
    return None


def price(prices, point):
    batch, new, rest = (int(point[k]) for k in ("batch", "new", "prefix_or_context"))
    got = prices.prefill(batch, new, rest) if point["kind"] == "prefill" else prices.decode(batch, rest)
    return 100 * (float(got) / float(point["ms"]) - 1)


def check_points(options):
    for path in options.folders:
        points = read_points(options.points or f"{path}/checks.csv.gz")
        table, missing = prices_of(path, {p["system"] for p in points}), 0
        groups, deployments = collections.defaultdict(list), collections.defaultdict(list)
        for point in points:
            hit = find_prices(table, point)
            if hit is None:
                missing += 1
                continue
            error = price(hit[1], point)
            for group in ("all", point["backend"]):
                groups[group, point["kind"]].append(error)
            deployments[point["kind"], folder.key_of({"slot": "", **point})].append(error)
        print(f"{path}: {len(points)} points" + (f", {missing} without a row" if missing else ""))
        print(f"  {'backend':10} {'kind':8} {'median':>8} {'p99':>8} {'max':>8} %")
        for (group, kind), errors in sorted(groups.items()):
            print(f"  {group:10} {kind:8} {error_figures(errors)}")
        worst = sorted(deployments.items(), key=lambda item: -np.max(np.abs(item[1])))[:options.worst]
        for (kind, key), errors in worst:
            print(f"    {kind:8} {error_figures(errors)}  {' '.join(k for k in key[1:] if k)}")


# ---------------------------------------------------------------- an installed package

def deployments_of(options, source):
    """(row, prices, deployment) of every current row that the package can price; corrections are on."""
    variants = {(v.hf_path, v.dtype): v for v in matrix.VARIANTS}
    for system in folder.systems_of(options.folders[0]):
        rows = folder.load_system(options.folders[0], system)
        replaced = {folder.key_of({**row, "corrected": "0"}) for row, _ in rows if row["corrected"] == "1"}
        for row, prices in rows:
            tag = f"{system}/{row['backend']}/{row['model']}/{row['dtype']}"
            variant = variants.get((row["hf_path"], row["dtype"]))
            if row["slot"] != "current" or folder.key_of(row) in replaced or not variant:
                continue
            if not all(part in tag for part in options.only):
                continue
            par = matrix.Parallelism(*(int(row[k]) for k in ("tp", "dp", "moe_tp", "moe_ep")))
            try:
                yield row, prices, source.deploy(system, row["backend"], "current", variant, par)
            except Exception as e:  # whatever the package raises says why it has no answer
                print(f"{name_of(row)}: {source.label} has no answer: {str(e)[:100]}", file=sys.stderr)


def name_of(row):
    return " ".join(row[k] for k in ("system", "backend", "backend_version", "model", "dtype")) + \
        f" tp{row['tp']} dp{row['dp']} moe_tp{row['moe_tp']} moe_ep{row['moe_ep']}"


def check_peer(options):
    source = engines.Source(options.package)
    signed = {"prefill": [], "decode": []}
    far = 0
    for row, prices, deployment in deployments_of(options, source):
        prefill, decode = (points[:options.count] for points in generate.held_out_points(repr(folder.key_of(row)) + "peer"))
        qk_norm = float(row["qk_norm_us"]) * int(row["layers"]) * 1e-3
        errors = {"prefill": [100 * (float(prices.prefill(*p)) / deployment.prefill(*p) - 1) for p in prefill],
                  "decode": [100 * ((float(prices.decode(*p)) + qk_norm) / deployment.decode(*p) - 1) for p in decode]}
        medians = {kind: np.median(values) for kind, values in errors.items()}
        for kind, values in errors.items():
            signed[kind] += values
        if max(map(abs, medians.values())) > WORTH_LISTING:
            far += 1
            print(f"{name_of(row)}: " + ", ".join(f"{k} {medians[k]:+.2f} % (largest {max(v, key=abs):+.1f} %)" for k, v in errors.items()))
    for kind, errors in signed.items():
        if errors:
            print(f"{kind:8} {error_figures(errors)} %  of {len(errors)} points against {source.label}")
    print(f"{far} deployments differ by more than {WORTH_LISTING:g} % in the median")


def check_qk_norm(options):
    """The difference of a decode pass, per layer, at contexts where attention is cheap and where it is not."""
    source = engines.Source(options.package)
    models = collections.defaultdict(list)
    for row, prices, deployment in deployments_of(options, source):
        if row["corrected"] == "1":
            continue
        differences = [(deployment.decode(b, n) - float(prices.decode(b, n))) * 1e3 / int(row["layers"])
                       for b, n in ((1, 300), (1, 4096), (8, 128), (4, 1000))]
        models[row["model"], row["backend"]].append(np.median(differences))
    for (model, backend), values in sorted(models.items()):
        print(f"{model:16} {backend:7} {len(values):4} deployments: {np.median(values):+7.2f} us per layer "
              f"({min(values):+.2f} to {max(values):+.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("points", "peer", "qk-norm"))
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--points", help="CSV file of recorded passes (default: the folder's checks.csv.gz)")
    parser.add_argument("--worst", type=int, default=10, help="deployments to list (%(default)s)")
    parser.add_argument("--package", default="aisimulate_core", help="installed package to ask (%(default)s)")
    parser.add_argument("--only", default="", help="parts of SYSTEM/BACKEND/MODEL/DTYPE, comma separated")
    parser.add_argument("--count", type=int, default=24, help="points of each kind and deployment (%(default)s)")
    options = parser.parse_args()
    options.only = [part for part in options.only.split(",") if part]
    {"points": check_points, "peer": check_peer, "qk-norm": check_qk_norm}[options.what](options)


if __name__ == "__main__":
    main()
