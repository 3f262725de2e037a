// The table of points. Only the rows in view exist as elements, so its size does not matter.

const rowHeight = 30;
const printedRows = 60;
const measuredRows = 400;
const usualMetrics = ["rejected_requests", "output_throughput_tok_s", "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_itl_ms", "prefix_cache_reused_ratio", "sla_attainment", "gpu_hours", "cost_usd_per_mtok_output"];

// The first column says what a row is: on the frontier, within noise of it, or missing a limit.
const frontierColumn = { name: "on_frontier", label: "★", unit: "", kind: "number", role: "point", doc: "★ on the frontier of the objectives, ≈ within noise of it, × misses a limit.", values: [] };
const rankOf = (row) => (frontierRows.has(row) ? 3 : noiseRows.has(row) ? 2 : infeasibleRows.has(row) ? 0 : 1);
const rankMarks = [["×", "misses a limit"], ["", ""], ["≈", "within noise of the frontier"], ["★", "on the frontier"]];

function rankRows() {
  for (let row = 0; row < report.rows; row++) frontierColumn.values[row] = rankOf(row);
}

// leadingColumns come first: outcome, axes, what the analysis bounds and optimises, then what follows from the axes.
function leadingColumns() {
  const names = [...axes.map((c) => c.name), "replicate", ...report.constraints.map((c) => c.column),
    ...report.objectives.map((o) => o.name), "rejected_requests", ...report.columns.filter((c) => c.role === "derived").map((c) => c.name), "gpus"];
  const mixed = (name) => columnsByName.has(name) && distinct(columnsByName.get(name)).length > 1;
  names.unshift(...["status", "source"].filter(mixed));
  names.push(...["timing_source"].filter(mixed));
  return [...new Set(names)].map((name) => columnsByName.get(name)).filter((c) => c);
}

// makeTable fills the element and returns { filter, select, redraw, … }. on.pick is called with a chosen row, on.hover with
// the row that the pointer or the keyboard is at, or null.
function makeTable(element, on) {
  const leading = leadingColumns();
  const chosen = new Set([frontierColumn, ...leading].map((c) => c.name).concat(usualMetrics));
  const view = { chosen, sort: frontierColumn, descending: true, rows: [], selected: null, active: null };
  const all = [frontierColumn, ...leading, ...report.columns.filter((c) => !leading.includes(c))];
  const body = html("tbody");
  const head = html("tr", { "aria-rowindex": 1 });
  const group = html("colgroup");
  const grid = html("table", { "aria-label": "Points" }, group, html("thead", {}, head), body);
  fill(element, grid);
  const shown = () => all.filter((c) => view.chosen.has(c.name));

  const drawHead = () => {
    const columns = shown();
    fill(group, columns.map((c) => html("col", { style: `width:${columnWidth(c)}px` })));
    grid.style.width = `${columns.reduce((sum, c) => sum + columnWidth(c), 0)}px`;
    fill(head, columns.map((c) => headCell(c, view, () => {
      if (view.sort === c) view.descending = !view.descending;
      else [view.sort, view.descending] = [c, c === frontierColumn || (c.role === "metric" && maximizes(c))];
      sortRows(view);
      drawHead();
      drawBody();
      head.querySelector(`[data-column="${CSS.escape(c.name)}"] button`).focus();
    })));
  };
  const drawBody = () => {
    const columns = shown();
    const everything = paper.printing;
    const rows = everything ? rowsOnPaper(view.rows) : view.rows;
    const from = everything ? 0 : Math.max(0, Math.floor(element.scrollTop / rowHeight) - 10);
    const to = Math.min(rows.length, everything ? printedRows : from + Math.ceil(element.clientHeight / rowHeight) + 20);
    const spacer = (rows) => html("tr", { class: "spacer", "aria-hidden": "true" }, html("td", { colspan: columns.length, style: `height:${rows * rowHeight}px` }));
    const focused = body.contains(document.activeElement);
    const reachable = view.rows.includes(view.active) ? view.active : view.rows[from];
    fill(body, from > 0 ? spacer(from) : null, rows.slice(from, to).map((row, i) => bodyRow(row, from + i, columns, view, row === reachable)),
      !everything && to < rows.length ? spacer(rows.length - to) : null);
    if (focused) body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
    grid.setAttribute("aria-rowcount", view.rows.length + 1);
  };
  const rowAt = (event) => {
    const line = event.target.closest("tr[data-row]");
    return line ? Number(line.dataset.row) : null;
  };
  const goTo = (place) => {
    view.active = view.rows[Math.min(view.rows.length - 1, Math.max(0, place))];
    const top = view.rows.indexOf(view.active) * rowHeight, room = element.clientHeight - head.offsetHeight;
    element.scrollTop = Math.min(top, Math.max(element.scrollTop, top + rowHeight - room));
    drawBody();
    body.querySelector('tr[tabindex="0"]').focus({ preventScroll: true });
    on.hover(view.active);
  };
  body.addEventListener("click", (event) => {
    const row = rowAt(event);
    if (row === null) return;
    view.active = row;
    on.pick(row);
  });
  body.addEventListener("pointerover", (event) => on.hover(rowAt(event)));
  body.addEventListener("pointerleave", () => on.hover(null));
  body.addEventListener("focusout", () => on.hover(null));
  body.addEventListener("keydown", (event) => {
    const row = rowAt(event);
    if (row === null) return;
    const at = view.rows.indexOf(row), page = Math.floor(element.clientHeight / rowHeight) - 2;
    const target = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: view.rows.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      view.active = row;
      on.pick(row);
    } else if (target !== undefined) goTo(target);
    else return;
    event.preventDefault();
  });
  let frame = 0;
  element.addEventListener("scroll", () => {
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; drawBody(); });
  });
  // refresh shows the rows of the selection.
  const refresh = () => {
    view.rows = [];
    for (let row = 0; row < report.rows; row++) {
      if (selection.has(row)) view.rows.push(row);
    }
    sortRows(view);
    drawBody();
  };
  rankRows();
  refresh();
  drawHead();
  return {
    columns: all,
    chosen: view.chosen,
    redraw() { drawHead(); drawBody(); },
    refresh() {
      element.scrollTop = 0;
      refresh();
    },
    rerank() {
      rankRows();
      if (view.sort === frontierColumn) sortRows(view);
      drawBody();
    },
    select(row) {
      view.selected = row;
      for (const line of body.querySelectorAll("tr[data-row]")) line.setAttribute("aria-selected", String(Number(line.dataset.row) === row));
    },
  };
}

// rowsOnPaper are those of the frontier, when there are any.
function rowsOnPaper(rows) {
  const best = rows.filter((row) => frontierRows.has(row));
  return best.length ? best : rows;
}

function columnWidth(column) {
  if (!column.width) {
    const every = Math.max(1, Math.floor(report.rows / measuredRows));
    let longest = 0;
    for (let row = 0; row < report.rows; row += every) longest = Math.max(longest, formatValue(column.values[row]).length);
    const heading = Math.max(...title(column).split(/[ _]/).map((w) => w.length), Math.ceil(title(column).length / 2.2));
    const words = column.kind === "string" && distinct(column).length <= measuredRows ? distinct(column).reduce((max, v) => Math.max(max, textWidth(v)), 0) : 0;
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
  return html("th", { scope: "col", class: column.kind === "number" && column !== frontierColumn ? "" : "text", "aria-sort": sorted, "data-column": column.name },
    html("button", { type: "button", title: `${column.name}: ${column.doc}`, "aria-label": column === frontierColumn ? "Mark" : null, onclick: onSort },
      spaced(column.label || title(column)), arrow, column.unit ? html("small", {}, column.unit) : null));
}

function bodyRow(row, place, columns, view, reachable) {
  return html("tr", { "data-row": row, "aria-rowindex": place + 2, "aria-selected": String(row === view.selected), tabindex: reachable ? 0 : -1 }, columns.map((c) => bodyCell(c, c.values[row])));
}

function bodyCell(column, value) {
  if (column === frontierColumn) {
    const [sign, meaning] = rankMarks[value];
    return html("td", { class: `text star${value === 0 ? " miss" : ""}`, title: meaning || null }, sign ? html("span", { role: "img", "aria-label": meaning }, sign) : null);
  }
  const classes = [column.kind === "number" ? "" : "text", value === null ? "null" : "", column === statusColumn && value !== "ok" ? "bad" : ""];
  return html("td", { class: classes.join(" ").trim(), title: column.kind === "string" ? value : null }, formatValue(value));
}

// sortRows orders by the chosen column, nulls last, ties in the sweep's order.
function sortRows(view) {
  if (view.sort === frontierColumn) {
    sortByRank(view);
    return;
  }
  const { values, kind } = view.sort;
  const sign = view.descending ? -1 : 1;
  const compare = kind === "string" ? wordOrder(view.sort) : (a, b) => Number(a) - Number(b);
  view.rows.sort((a, b) => {
    const va = values[a], vb = values[b];
    if (va === null || vb === null) return (va === null) - (vb === null) || a - b;
    return sign * compare(va, vb) || a - b;
  });
}

// sortByRank orders by the few ranks there are, which takes one walk.
function sortByRank(view) {
  const ranked = rankMarks.map(() => []);
  view.rows.sort((a, b) => a - b);
  for (const row of view.rows) ranked[rankOf(row)].push(row);
  if (view.descending) ranked.reverse();
  view.rows = ranked.flat();
}

// wordOrder compares words as people order them: once for each pair of distinct words would be slow.
function wordOrder(column) {
  if (!column.places) {
    const collator = new Intl.Collator("en", { numeric: true });
    column.places = new Map([...distinct(column)].sort(collator.compare).map((word, i) => [word, i]));
  }
  return (a, b) => column.places.get(a) - column.places.get(b);
}
