"""Opens a results.parquet with pandas, Polars and DuckDB, with no options, and checks that all three read the same.

Usage: python tools/check_parquet.py results.parquet [column=type ...]

Types are string, int64, double and bool. Without any, the columns that every results table has are checked. Needs
pandas with pyarrow, polars and duckdb.
"""

import json
import math
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq

ALWAYS = {
    "id": "string", "status": "string", "reason": "string", "error": "string", "wall_s": "double", "gpus": "int64",
    "num_requests": "int64", "mean_ttft_ms": "double", "p99_itl_ms": "double", "output_throughput_tok_s": "double",
    "workload_digest": "string", "simulator_version": "string",
}
ARROW = {"string": "string", "int64": "int64", "double": "double", "bool": "bool"}
POLARS = {"string": pl.String, "int64": pl.Int64, "double": pl.Float64, "bool": pl.Boolean}
DUCKDB = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}


def pandas_types(column, kind):
    """The types that pandas gives a column: it has no null integer or boolean, so nulls make them wider."""
    missing = column.isna().any()
    return {
        "string": ("object", "str", "string"),
        "int64": ("float64",) if missing else ("int64",),
        "double": ("float64", "object") if column.isna().all() else ("float64",),
        "bool": ("object",) if missing else ("bool",),
    }[kind]


def plain(value):
    """One form for equal values of the three libraries; a missing value is None."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check(path, expected):
    schema = pq.read_schema(path)
    frame = pd.read_parquet(path)
    polars = pl.read_parquet(path)
    duck = duckdb.sql(f"SELECT * FROM '{path}'")
    names = list(frame.columns)
    assert names == polars.columns == duck.columns == schema.names, "the column names differ"
    kinds = {field.name: next(k for k, t in ARROW.items() if str(field.type) == t) for field in schema}
    for name, kind in expected.items():
        assert kinds.get(name) == kind, f"{name} is {kinds.get(name)}; want {kind}"
    rows = duck.fetchall()
    for i, name in enumerate(names):
        kind = kinds[name]
        assert str(frame[name].dtype) in pandas_types(frame[name], kind), f"pandas: {name} is {frame[name].dtype}; want {kind}"
        assert polars.schema[name] == POLARS[kind], f"polars: {name} is {polars.schema[name]}; want {kind}"
        assert str(duck.types[i]) == DUCKDB[kind], f"duckdb: {name} is {duck.types[i]}; want {kind}"
        a = [plain(v) for v in frame[name]]
        b = [plain(v) for v in polars[name]]
        c = [plain(row[i]) for row in rows]
        assert a == b == c, f"{name}: the values differ"
    described = json.loads(schema.metadata[b"servegrid.columns"])
    assert set(described) == set(names), "the metadata describes other columns"
    print(f"{path}: {len(frame)} rows, {len(names)} columns read the same by pandas {pd.__version__}, polars {pl.__version__}, duckdb {duckdb.__version__}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    given = dict(argument.split("=", 1) for argument in sys.argv[2:])
    check(sys.argv[1], given or ALWAYS)
