// A heat map: two axes across and up, a colour for a figure of the points in each cell.

const mostHeatCells = 24;

// heatSummaries say what a cell shows of its points' figures.
const heatSummaries = [
  ["best", "best", "The best point of each cell, of those that keep the bounds when any does"],
  ["mean", "mean", "The mean of the points of each cell, of those that keep the bounds when any does"],
  ["worst", "worst", "The worst point of each cell, of those that keep the bounds when any does"],
  ["feasible", "share that keeps the bounds", "How many of the points of each cell keep the bounds"],
];

// heatAxes are the columns that can be an axis of the map.
const heatAxes = () => report.columns.filter((c) => c.role !== "metric" && c.name !== "id" && c.name !== "status" && c.name !== "replicate" && (c.role === "axis" || isNumeric(c) || c.kind === "bool") && distinct(c).length > 1);

// usualHeat is what the map shows at first: the two axes with the most values, numbers before words.
function usualHeat() {
  const sorted = [...variedAxes].sort((a, b) => isNumeric(b) - isNumeric(a) || distinct(b).length - distinct(a).length);
  const [x, y] = sorted.length > 1 ? sorted : heatAxes();
  const objective = report.objectives.map((o) => columnsByName.get(o.name)).find((c) => c) || plottable[0];
  return { x, y, figure: objective, summary: "best", at: null };
}

// heatCells sorts the points into cells: { x, y, columns, rows, cells: Map of "i,j" to { i, j, rows, kept, value, best } }.
function heatCells(view) {
  const x = positions(view.x, mostHeatCells), y = positions(view.y, mostHeatCells), figures = means(view.figure), cells = new Map();
  for (const row of candidateRows) {
    if (statusOf(row) !== "ok" || view.x.values[row] === null || view.y.values[row] === null) continue;
    const i = x.at.get(view.x.values[row]), j = y.at.get(view.y.values[row]), key = `${i},${j}`;
    if (!cells.has(key)) cells.set(key, { i, j, rows: [], kept: [] });
    cells.get(key).rows.push(row);
    if (!infeasibleRows.has(row)) cells.get(key).kept.push(row);
  }
  for (const cell of cells.values()) summarise(cell, view, figures);
  return { x, y, cells };
}

// summarise finds the value that a cell shows, and its best point.
function summarise(cell, view, figures) {
  const known = (rows) => rows.filter((row) => figures[row] !== null);
  const rows = known(cell.kept.length ? cell.kept : cell.rows);
  const better = maximizes(view.figure) ? (a, b) => figures[b] > figures[a] : (a, b) => figures[b] < figures[a];
  cell.best = rows.length ? rows.reduce((a, b) => (better(a, b) ? b : a)) : null;
  if (view.summary === "feasible") cell.value = cell.kept.length / cell.rows.length;
  else if (rows.length === 0) cell.value = null;
  else if (view.summary === "mean") cell.value = rows.reduce((sum, row) => sum + figures[row], 0) / rows.length;
  else cell.value = figures[view.summary === "best" ? cell.best : rows.reduce((a, b) => (better(a, b) ? a : b))];
}

// heatScale maps values to shares of the ramp, by their logarithm when they span decades.
function heatScale(values) {
  const known = values.filter((v) => v !== null);
  const log = spansDecades(known), of = log ? Math.log : (v) => v;
  const low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  return { low, high, log, share: (v) => (high > low ? (of(v) - of(low)) / (of(high) - of(low)) : 0.5) };
}

const heatValue = (view, value) => (value === null ? "–" : view.summary === "feasible" ? wholePercent(value) : formatNumber(value));

// makeHeatmap puts the map into its element and returns { view, redraw }, or null without two axes and a figure.
function makeHeatmap(element) {
  const view = usualHeat();
  if (!view.x || !view.y || !view.figure || view.x === view.y) return null;
  const tip = html("div", { class: "tooltip", role: "status", hidden: true });
  const scroll = html("div", { class: "scroll" }), key = html("div", { class: "heat-key muted" });
  fill(element, scroll, key, tip);
  const show = (cell, at) => {
    tip.hidden = !cell;
    if (!cell) return;
    const box = at.getBoundingClientRect();
    fill(tip, heatTip(view, cell));
    placeBeside(tip, element, { clientX: box.right - 10, clientY: box.bottom - 8 });
  };
  const choose = (cell, more) => {
    const before = selection.of("heatmap");
    const same = before && !more && before.size === cell.rows.flatMap(replicatesOf).length && cell.rows.every((row) => before.has(row));
    selection.set(same ? null : more && before ? [...before, ...cell.rows] : cell.rows, "heatmap");
  };
  function redraw() {
    const map = heatCells(view);
    const focused = scroll.contains(document.activeElement);
    fill(scroll, heatTable(view, map, element.clientWidth, { show, choose }));
    fill(key, heatKey(view, map));
    if (focused) scroll.querySelector("td[tabindex='0']")?.focus({ preventScroll: true });
    markSelected();
  }
  function markSelected() {
    for (const td of scroll.querySelectorAll("td[data-cell]")) {
      const chosen = selection.active() && td.cell.rows.some((row) => selection.touches(row));
      td.classList.toggle("out", selection.active() && !chosen);
      td.setAttribute("aria-selected", String(chosen));
    }
  }
  const ask = drawnWhenSeen(element, redraw);
  onChange(["bounds", "theme"], ask);
  onChange(["selection"], markSelected);
  onResize(element, ask);
  ask();
  return { view, redraw };
}

// heatTable is a grid that the arrow keys walk through.
function heatTable(view, map, width, on) {
  const columns = Array.from({ length: map.x.groups }, (_, i) => i), rows = Array.from({ length: map.y.groups }, (_, j) => map.y.groups - 1 - j);
  const scale = heatScale([...map.cells.values()].map((c) => c.value));
  const cellWidth = Math.max(34, Math.min(120, Math.floor((width - 150) / columns.length)));
  const look = { scale, text: cellWidth >= 44, width: cellWidth };
  const body = rows.map((j) => html("tr", {}, html("th", { scope: "row" }, formatAxisValue(map.y.label(j))), columns.map((i) => heatCell(view, map.cells.get(`${i},${j}`), { i, j }, look, on))));
  const table = html("table", { class: "heat", role: "grid", "aria-label": `${title(view.figure)} by ${view.x.name} and ${view.y.name}` },
    html("tbody", {}, body),
    html("tfoot", {}, html("tr", {}, html("td", {}), columns.map((i) => html("th", { scope: "col", style: `width:${cellWidth}px` }, formatAxisValue(map.x.label(i)))))),
    html("caption", {}, html("span", { class: "across" }, view.x.name, " →"), html("span", { class: "up" }, "↑ ", view.y.name)));
  const cells = [...table.querySelectorAll("tbody td")];
  const start = cells.find((td) => td.dataset.cell === view.at) || cells.find((td) => td.cell);
  if (start) start.tabIndex = 0;
  table.addEventListener("keydown", (event) => walkCells(event, table, view, on));
  return table;
}

// walkCells moves the focus among the cells of a grid; Enter chooses.
function walkCells(event, table, view, on) {
  const td = event.target.closest("td[data-cell]");
  if (!td) return;
  if (event.key === "Enter" || event.key === " ") on.choose(td.cell, event.shiftKey);
  else {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!by) return;
    let [i, j] = td.dataset.cell.split(",").map(Number), next = null;
    do {
      [i, j] = [i + by[0], j + by[1]];
      next = table.querySelector(`td[data-at="${i},${j}"]`);
    } while (next && !next.cell);
    if (next) {
      td.tabIndex = -1;
      next.tabIndex = 0;
      view.at = next.dataset.cell;
      next.focus();
    }
  }
  event.preventDefault();
}

function heatCell(view, cell, { i, j }, look, on) {
  if (!cell) return html("td", { class: "none", "data-at": `${i},${j}` });
  const share = cell.value === null ? null : look.scale.share(cell.value);
  const color = share === null ? "transparent" : rampColor(share);
  const td = html("td", {
    "data-at": `${i},${j}`, "data-cell": `${i},${j}`, tabindex: -1, class: [cell.kept.length === 0 ? "misses" : "", share === null ? "" : isBright(color) ? "bright" : "dim"].join(" ").trim(), style: `background-color:${color}`,
    "aria-label": `${view.x.name} ${formatValue(view.x.values[cell.rows[0]])}, ${view.y.name} ${formatValue(view.y.values[cell.rows[0]])}: ${heatValue(view, cell.value)}, ${plural(cell.rows.length, "point")}${cell.kept.length === 0 ? ", none keeps the bounds" : ""}`,
    onmouseenter: (e) => on.show(cell, e.currentTarget), onmouseleave: () => on.show(null), onfocus: (e) => on.show(cell, e.currentTarget), onblur: () => on.show(null),
    onclick: (event) => on.choose(cell, event.shiftKey || event.ctrlKey || event.metaKey),
  }, look.text ? [html("span", {}, heatValue(view, cell.value)), cell.rows.length > 1 ? html("small", {}, `${cell.kept.length < cell.rows.length ? `${cell.kept.length} of ` : ""}${cell.rows.length}`) : null] : null);
  td.cell = cell;
  return td;
}

// channelsOf are the red, green and blue of a colour as #rrggbb or rgb(r g b).
const channelsOf = (color) => (color.startsWith("#") ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)) : color.match(/[\d.]+/g).map(Number));

// isBright says whether black is easier to read on a colour than white, by its relative luminance as WCAG defines it.
function isBright(color) {
  const [r, g, b] = channelsOf(color).map((channel) => (channel / 255 <= 0.04045 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

// heatTip tells what a cell holds.
function heatTip(view, cell) {
  const at = (axis) => [...new Set(cell.rows.map((row) => axis.values[row]))].sort((a, b) => a - b);
  const span = (axis) => ((v) => (v.length > 1 ? `${formatValue(v[0])} to ${formatValue(v[v.length - 1])}` : formatValue(v[0])))(at(axis));
  const label = view.summary === "feasible" ? "keep the bounds" : `${heatSummaries.find(([key]) => key === view.summary)[1]} ${title(view.figure)}`;
  const value = heatValue(view, cell.value) + (view.summary !== "feasible" && view.figure.unit && cell.value !== null ? ` ${view.figure.unit}` : "");
  const points = plural(cell.rows.length, "point") + (report.constraints.length ? `, ${cell.kept.length} keep the bounds` : "");
  return [pairs([[view.x.name, span(view.x)], [view.y.name, span(view.y)], null, [label, value], ["of", points]]),
    cell.best !== null ? html("p", { class: "note muted" }, `Best: ${configuration(cell.best)}`) : null];
}

// heatKey is the ramp with its ends, and what hatching means.
function heatKey(view, map) {
  const cells = [...map.cells.values()], scale = heatScale(cells.map((c) => c.value));
  if (!(scale.low <= scale.high)) return [];
  const better = view.summary === "feasible" || maximizes(view.figure);
  const stops = Array.from({ length: 9 }, (_, i) => rampColor(i / 8)).join(", ");
  return [html("span", {}, heatValue(view, scale.low), better ? "" : ", better"), html("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }),
    html("span", {}, heatValue(view, scale.high), better ? ", better" : "", scale.log ? " · logarithmic" : ""),
    cells.some((c) => c.kept.length === 0) ? html("span", {}, html("i", { class: "misses" }), "no point keeps the bounds") : null,
    html("span", {}, "Click a cell to choose its points, with Shift to add them.")];
}
