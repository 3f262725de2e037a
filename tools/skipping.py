"""Checks that DuckDB skips what it need not read of a sweep's files: folders by their partition, row groups by the least and the
largest value, and by a Bloom filter when one point is looked for.

    python tools/skipping.py --servegrid ./servegrid

Needs duckdb.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import duckdb

SPEC = """
name: skipping
workload: {preset: {name: chat, requests: 200, rate: 8, seed: 1}}
grid: {deployment.workers: [1, 2, 4], engine.max_num_seqs: [16, 64]}
output: {per_request: true, timelines: true, partition_by: [workers, max_num_seqs]}
"""
MANY_REQUESTS = 60_000  # more than one row group


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servegrid", required=True, help="the program")
    args = parser.parse_args()
    program = str(Path(args.servegrid).resolve())
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        (work / "grid.yaml").write_text(SPEC)
        subprocess.run([program, "sweep", str(work / "grid.yaml"), "--quiet", "--output", str(work / "run")], check=True)
        for folder in ("requests", "timelines"):
            check_partitions(work / "run" / folder)
        many = work / "many.parquet"
        subprocess.run([program, "replay", "--input-tokens", "64", "--output-tokens", "2", "--request-count", str(MANY_REQUESTS), "--arrival-interval-ms", "2",
                        "--num-workers", "8", "--report-parquet", str(many), "--report-json", str(work / "many.json")], check=True, stdout=subprocess.DEVNULL)
        check_groups(many)
        check_ids(program, many, work)


def plan(sql):
    """The plan of a query, with what it has read."""
    return duckdb.sql("explain analyze " + sql).fetchall()[0][1]


def share(text, label):
    """What DuckDB read, and of how many."""
    read, of = re.search(label + r":? *(\d+) ?/ ?(\d+)", text).groups()
    return int(read), int(of)


def check_partitions(folder):
    source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    names = duckdb.sql(f"select * from {source}").columns
    assert set(names[-2:]) == {"workers", "max_num_seqs"}, names
    types = duckdb.sql(f"select distinct workers, max_num_seqs from {source} order by all").fetchall()
    assert types == [(w, s) for w in (1, 2, 4) for s in (16, 64)], types
    got = share(plan(f"select count(*) from {source} where workers = 2"), "Scanning Files")
    assert got == (2, 6), f"DuckDB read {got[0]} of {got[1]} files for one of three numbers of workers"
    print(f"{folder.name}: {got[0]} of {got[1]} files read for one of three partitions")


def check_groups(path):
    last = duckdb.sql(f"select max(arrival_time_ms) from '{path}'").fetchall()[0][0]
    read, of = share(plan(f"select avg(ttft_ms) from '{path}' where arrival_time_ms > {last * .99}"), "Row Groups Scanned")
    assert of >= 3 and read == 1, f"DuckDB read {read} of {of} row groups for the last requests"
    print(f"row groups: {read} of {of} read for the last hundredth of the requests")


def check_ids(program, path, work):
    """A results file has an ID a row, in no order; one is made that has many rows."""
    results = work / "rows.csv"
    rows = duckdb.sql(f"select md5(request::varchar) as id, 'ok' as status, ttft_ms as mean_ttft_ms, request as workers from '{path}'")
    rows.write_csv(str(results))
    wide = work / "rows.parquet"
    subprocess.run([program, "pareto", str(results), "--minimize", "mean_ttft_ms", "--format", "parquet", "--output", str(wide)], check=True, stdout=subprocess.DEVNULL)
    wanted = duckdb.sql(f"select id from '{wide}' limit 1 offset 30000").fetchall()[0][0]
    read, of = share(plan(f"select * from '{wide}' where id = '{wanted}'"), "Row Groups Scanned")
    assert of >= 3 and read <= 2, f"DuckDB read {read} of {of} row groups for one point"
    print(f"Bloom filter: {read} of {of} row groups read for one point")


if __name__ == "__main__":
    main()
