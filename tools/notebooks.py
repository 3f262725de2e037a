"""Runs the notebooks and the SQL of examples/analysis, and the SQL of docs/dataframes.md, on a fresh sweep.

Fails when one of them does, or when a query finds nothing.

    python tools/notebooks.py --servegrid ./servegrid

Needs nbclient, ipykernel, pandas, polars, pyarrow, matplotlib and duckdb.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb
import nbformat
from nbclient import NotebookClient

REPOSITORY = Path(__file__).resolve().parent.parent
ANALYSIS = REPOSITORY / "examples" / "analysis"
PAGE = REPOSITORY / "docs" / "dataframes.md"


def queries():
    """Every query, with the name of its file."""
    for statement in duckdb.extract_statements((ANALYSIS / "queries.sql").read_text()):
        yield "queries.sql", statement.query
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL):
        yield PAGE.name, block


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servegrid", required=True, help="the program")
    args = parser.parse_args()
    program = str(Path(args.servegrid).resolve())

    with tempfile.TemporaryDirectory() as work:
        run = Path(work) / "runs" / "analysis"
        subprocess.run([program, "sweep", str(ANALYSIS / "grid.yaml"), "--quiet", "--output", str(run)], check=True)

        os.environ["SERVEGRID_RUN"] = str(run)
        for path in sorted(ANALYSIS.glob("*.ipynb")):
            start = time.monotonic()
            book = nbformat.read(path, as_version=4)
            if any(cell.get("outputs") for cell in book.cells):
                sys.exit(f"{path.name} is committed with outputs; clear them")
            NotebookClient(book, timeout=120).execute(cwd=work)
            print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in book.cells)} cells, {time.monotonic() - start:.1f} s")

        os.chdir(work)
        done = Counter()
        for file, sql in queries():
            if not duckdb.sql(sql).fetchall():
                sys.exit(f"{file}: no rows: {sql}")
            done[file] += 1
        print("; ".join(f"{file}: {n} queries, each with rows" for file, n in done.items()))


if __name__ == "__main__":
    main()
