// The table of points. Only the rows in view exist as elements, so its size does not matter.

const rowHeight = 30;
const printedRows = 60;
const usualMetrics = ["rejected_requests", "output_throughput_tok_s", "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_itl_ms", "prefix_cache_reused_ratio", "sla_attainment", "gpu_hours", "cost_usd_per_mtok_output"];

const frontierColumn = {
  name: "on_frontier", label: "★", unit: "", kind: "bool", role: "point", doc: "On the frontier of the objectives.",
  values: Array.from({ length: report.rows }, (_, row) => frontierRows.has(row)),
};

// leadingColumns come first: outcome, axes, what the analysis bounds and optimises, then what follows from the axes.
function leadingColumns() {
  const names = [...axes.map((c) => c.name), "replicate", ...report.constraints.map((c) => c.column),
    ...report.objectives.map((o) => o.name), "rejected_requests", ...report.columns.filter((c) => c.role === "derived").map((c) => c.name), "gpus"];
  if (statusColumn && distinct(statusColumn).length > 1) names.unshift("status");
  const sources = columnsByName.get("timing_source");
  if (sources && distinct(sources).length > 1) names.push("timing_source");
  return [...new Set(names)].map((name) => columnsByName.get(name)).filter((c) => c);
}

// makeTable fills the element and returns { filter, select, redraw }.
function makeTable(element, onPick) {
  const leading = leadingColumns();
  const chosen = new Set([frontierColumn, ...leading].map((c) => c.name).concat(usualMetrics));
  const view = { chosen, sort: frontierColumn, descending: true, rows: filterRows(""), selected: null };
  const all = [frontierColumn, ...leading, ...report.columns.filter((c) => !leading.includes(c))];
  const body = html("tbody");
  const head = html("tr");
  const group = html("colgroup");
  fill(element, html("table", { "aria-rowcount": report.rows }, group, html("thead", {}, head), body));
  const shown = () => all.filter((c) => view.chosen.has(c.name));

  const drawHead = () => {
    const columns = shown();
    fill(group, columns.map((c) => html("col", { style: `width:${columnWidth(c)}px` })));
    element.querySelector("table").style.width = `${columns.reduce((sum, c) => sum + columnWidth(c), 0)}px`;
    fill(head, columns.map((c) => headCell(c, view, () => {
      if (view.sort === c) view.descending = !view.descending;
      else [view.sort, view.descending] = [c, c === frontierColumn || (c.role === "metric" && maximizes(c))];
      sortRows(view);
      drawHead();
      drawBody();
    })));
  };
  const drawBody = () => {
    const columns = shown();
    const everything = paper.printing;
    const from = everything ? 0 : Math.max(0, Math.floor(element.scrollTop / rowHeight) - 10);
    const to = Math.min(view.rows.length, everything ? printedRows : from + Math.ceil(element.clientHeight / rowHeight) + 20);
    const spacer = (rows) => html("tr", { class: "spacer", "aria-hidden": "true" }, html("td", { colspan: columns.length, style: `height:${rows * rowHeight}px` }));
    fill(body, from > 0 ? spacer(from) : null, view.rows.slice(from, to).map((row) => bodyRow(row, columns, view, onPick)),
      !everything && to < view.rows.length ? spacer(view.rows.length - to) : null);
  };
  element.addEventListener("scroll", () => requestAnimationFrame(drawBody));
  sortRows(view);
  drawHead();
  drawBody();
  return {
    columns: all,
    chosen: view.chosen,
    redraw() { drawHead(); drawBody(); },
    filter(text) {
      view.rows = filterRows(text);
      sortRows(view);
      element.scrollTop = 0;
      drawBody();
      return view.rows.length;
    },
    select(row) { view.selected = row; drawBody(); },
  };
}

function columnWidth(column) {
  if (!column.width) {
    const longest = column.values.reduce((max, v) => Math.max(max, formatValue(v).length), 0);
    const heading = Math.max(...title(column).split(/[ _]/).map((w) => w.length), Math.ceil(title(column).length / 2.2));
    const words = column.kind === "string" ? distinct(column).filter((v) => v.length > longest - 4).reduce((max, v) => Math.max(max, textWidth(v)), 0) : 0;
    column.width = column === frontierColumn ? 52 : Math.round(Math.min(260, Math.max(words, Math.max(longest, heading + 2, 7) * 7.4) + 28));
  }
  return column.width;
}

const ruler = document.createElement("canvas").getContext("2d");

// textWidth is the width of a word in a cell, which a count of letters only guesses: m and _ are wide.
function textWidth(text) {
  ruler.font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

function headCell(column, view, onSort) {
  const sorted = view.sort === column ? (view.descending ? "descending" : "ascending") : "none";
  const arrow = sorted === "none" ? null : html("span", { class: "arrow", "aria-hidden": "true" }, view.descending ? " ↓" : " ↑");
  return html("th", { scope: "col", class: column.kind === "number" ? "" : "text", "aria-sort": sorted, "data-column": column.name },
    html("button", { type: "button", title: `${column.name}: ${column.doc}`, onclick: onSort },
      spaced(column.label || title(column)), arrow, column.unit ? html("small", {}, column.unit) : null));
}

function bodyRow(row, columns, view, onPick) {
  return html("tr", { "data-row": row, "aria-selected": String(row === view.selected), onclick: () => onPick(row) }, columns.map((c) => bodyCell(c, c.values[row])));
}

function bodyCell(column, value) {
  if (column === frontierColumn) return html("td", { class: "text star" }, value ? "★" : "");
  const classes = [column.kind === "number" ? "" : "text", value === null ? "null" : "", column === statusColumn && value !== "ok" ? "bad" : ""];
  return html("td", { class: classes.join(" ").trim(), title: column.kind === "string" ? value : null }, formatValue(value));
}

// sortRows orders by the chosen column, nulls last, ties in the sweep's order.
function sortRows(view) {
  const { values, kind } = view.sort;
  const sign = view.descending ? -1 : 1;
  const compare = kind === "string" ? (a, b) => a.localeCompare(b, "en", { numeric: true }) : (a, b) => Number(a) - Number(b);
  view.rows.sort((a, b) => {
    const va = values[a], vb = values[b];
    if (va === null || vb === null) return (va === null) - (vb === null) || a - b;
    return sign * compare(va, vb) || a - b;
  });
}
