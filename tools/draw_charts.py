#!/usr/bin/env python3
"""Validates Vega-Lite charts against Altair's schema and draws them as SVG beside themselves.

    draw_charts.py FOLDER...

Fails when a chart is not valid, cannot be drawn, or draws no marks. Needs altair and vl-convert-python.
"""

import json
import pathlib
import sys

import altair
import vl_convert


def draw(path):
    """Draws one chart and returns how many shapes it has."""
    spec = json.loads(path.read_text())
    altair.Chart.from_dict(spec, validate=True)
    svg = vl_convert.vegalite_to_svg(spec, vl_version="5.20")
    path.with_suffix("").with_suffix(".svg").write_text(svg)
    return svg.count("<path")


def main():
    charts = sorted(path for folder in sys.argv[1:] for path in pathlib.Path(folder).glob("*.vl.json"))
    if not charts:
        sys.exit(f"no charts in {' '.join(sys.argv[1:]) or 'no folder'}")
    for path in charts:
        shapes = draw(path)
        print(f"{path}: {shapes} shapes")
        if shapes < 10:
            sys.exit(f"{path} draws hardly anything")


if __name__ == "__main__":
    main()
