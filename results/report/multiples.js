// Small multiples: every varied axis against every objective.

const cell = { height: 158, left: 40, right: 6, top: 8, bottom: 44, narrowest: 190 };
const mostPositions = 24;

// drawMultiples fills the element and returns whether there was anything to draw.
function drawMultiples(element) {
  const objectives = report.objectives.map((o) => columnsByName.get(o.name)).filter((c) => c);
  if (variedAxes.length === 0 || objectives.length === 0) return false;
  const gap = 22;
  const width = Math.max(cell.narrowest, Math.min(420, Math.floor((element.clientWidth - gap * (variedAxes.length - 1)) / variedAxes.length)));
  const rows = objectives.map((objective) => [
    html("h3", {}, title(objective), objective.unit ? html("small", {}, objective.unit) : null),
    variedAxes.map((axis) => html("div", { class: "multiple" }, drawMultiple(axis, objective, width))),
  ]);
  fill(element, html("div", { class: "multiples-grid", style: `grid-template-columns: repeat(${variedAxes.length}, ${width}px)` }, rows));
  return true;
}

// positions puts an axis's values side by side; an axis with very many values is cut into even groups.
function positions(axis) {
  const values = distinct(axis);
  const groups = Math.min(values.length, mostPositions);
  const at = new Map(values.map((v, i) => [v, Math.floor((i * groups) / values.length)]));
  const label = (i) => values[Math.ceil((i * values.length) / groups)];
  return { groups, at, label };
}

function drawMultiple(axis, objective, width) {
  const { groups, at, label } = positions(axis);
  const figures = means(objective);
  const rows = candidateRows.filter((row) => axis.values[row] !== null && figures[row] !== null);
  const values = rows.map((row) => figures[row]);
  const y = makeScale(values, cell.height - cell.bottom, cell.top, spansDecades(values));
  const span = (width - cell.left - cell.right) / groups;
  const center = (i) => cell.left + (i + 0.5) * span;
  const root = svg("svg", { width: width, height: cell.height, role: "img", "aria-label": `${title(objective)} by ${axis.name}` });
  const grid = svg("g", { class: "grid" });
  for (const v of y.ticks(3)) {
    grid.append(svg("line", { x1: cell.left, x2: width - cell.right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: cell.left - 6, y: y(v) + 3.5, "text-anchor": "end" }, formatTick(v)));
  }
  root.prepend(grid);
  const buckets = Array.from({ length: groups }, () => []);
  let points = "";
  for (const row of rows) {
    const group = at.get(axis.values[row]);
    if (!infeasibleRows.has(row)) buckets[group].push(figures[row]);
    const spread = ((row * 0.6180339887) % 1) - 0.5;
    points += outline("circle", center(group) + spread * Math.min(14, span * 0.6), y(figures[row]), 2);
  }
  const medians = buckets.map((b, i) => [i, median(b)]).filter(([, m]) => m !== null).map(([i, m]) => [center(i), y(m)]);
  root.append(svg("path", { class: "point", d: points }), svg("path", { class: "median", d: toPath(medians) }),
    svg("path", { class: "median-dot", d: medians.map(([mx, my]) => outline("circle", mx, my, 2.8)).join("") }), ...axisLabels(groups, label, center, span));
  root.append(svg("text", { class: "name", x: (cell.left + width - cell.right) / 2, y: cell.height - 8, "text-anchor": "middle" }, axis.name));
  return root;
}

// axisLabels writes as many values as fit.
function axisLabels(groups, label, center, span) {
  const texts = Array.from({ length: groups }, (_, i) => formatAxisValue(label(i)));
  const widest = Math.max(...texts.map((t) => t.length)) * 6 + 6;
  const every = Math.max(1, Math.ceil(widest / span));
  return texts.map((text, i) => (i % every === 0 ? svg("text", { x: center(i), y: cell.height - cell.bottom + 16, "text-anchor": "middle" }, text) : null)).filter((t) => t);
}

function formatAxisValue(value) {
  const text = typeof value === "number" ? formatNumber(value) : String(value);
  return text.length > 14 ? `${text.slice(0, 13)}…` : text;
}

function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
