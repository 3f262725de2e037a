// Small multiples: every varied axis against every objective. A click on a value chooses its points.

const cell = { height: 158, left: 40, right: 6, top: 8, bottom: 44, narrowest: 190 };
const mostPositions = 24;
const mostDots = 2000;

function drawMultiples(element) {
  const objectives = report.objectives.map((o) => columnsByName.get(o.name)).filter((c) => c);
  if (variedAxes.length === 0) return;
  const gap = 22;
  const width = Math.max(cell.narrowest, Math.min(420, Math.floor((element.clientWidth - gap * (variedAxes.length - 1)) / variedAxes.length)));
  const rows = objectives.map((objective) => [
    html("h3", {}, title(objective), objective.unit ? html("small", {}, objective.unit) : null),
    variedAxes.map((axis) => html("div", { class: "multiple" }, drawMultiple(axis, objective, width))),
  ]);
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.value : undefined;
  fill(element, html("div", { class: "multiples-grid", style: `grid-template-columns: repeat(${variedAxes.length}, ${width}px)` }, rows));
  if (focused !== undefined) [...element.querySelectorAll("[data-value]")].find((band) => band.dataset.value === focused)?.focus({ preventScroll: true });
}

// multiplesNote says what the dots and the line are.
function multiplesNote() {
  const kept = report.constraints.length ? " of those that keep the bounds" : "";
  const dots = candidateRows.length > mostDots ? `${mostDots.toLocaleString("en-US")} of the points` : "Every point";
  return `${dots}; the line joins the medians${selection.active() ? " of the chosen points" : ""}${selection.active() && kept ? " that keep the bounds" : kept}. Click a value to choose its points.`;
}

// positions puts an axis's values side by side; an axis with very many values is cut into even groups.
function positions(axis, most = mostPositions) {
  const values = distinct(axis);
  const groups = Math.min(values.length, most);
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
  const root = svg("svg", { width: width, height: cell.height, role: "group", "aria-label": `${title(objective)} by ${axis.name}` });
  const grid = svg("g", { class: "grid" });
  for (const v of y.ticks(3)) {
    grid.append(svg("line", { x1: cell.left, x2: width - cell.right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: cell.left - 6, y: y(v) + 3.5, "text-anchor": "end" }, formatTick(v)));
  }
  root.prepend(grid);
  const spread = (row) => (((row * 0.6180339887) % 1) - 0.5) * Math.min(14, span * 0.6);
  root.append(...drawDots(rows, (row) => [center(at.get(axis.values[row])) + spread(row), y(figures[row])]));
  const medians = mediansOf(rows, groups, (row) => at.get(axis.values[row]), figures).map(([i, m]) => [center(i), y(m)]);
  root.append(svg("path", { class: "median", d: toPath(medians) }),
    svg("path", { class: "median-dot", d: medians.map(([mx, my]) => outline("circle", mx, my, 2.8)).join("") }), ...axisLabels(groups, label, center, span));
  root.append(svg("text", { class: "name", x: (cell.left + width - cell.right) / 2, y: cell.height - 8, "text-anchor": "middle" }, axis.name));
  root.append(drawBands(axis, objective, { groups, at, label, center, span }, rows));
  return root;
}

// drawDots draws the points in three looks: chosen, chosen but missing the bounds, and the rest.
function drawDots(rows, place) {
  const paths = { point: "", "point misses": "", "point out": "" };
  const step = Math.max(1, rows.length / mostDots);
  for (let i = 0; i < rows.length; i += step) {
    const row = rows[Math.floor(i)];
    const look = !selection.touches(row) ? "point out" : infeasibleRows.has(row) ? "point misses" : "point";
    paths[look] += outline("circle", ...place(row), 2);
  }
  return ["point out", "point misses", "point"].map((look) => svg("path", { class: look, d: paths[look] }));
}

// mediansOf are the medians of the chosen points that keep the bounds, by group: [[group, median], …].
function mediansOf(rows, groups, groupOf, figures) {
  const buckets = Array.from({ length: groups }, () => []);
  for (const row of rows) {
    if (!infeasibleRows.has(row) && selection.touches(row)) buckets[groupOf(row)].push(figures[row]);
  }
  return buckets.map((b, i) => [i, median(b)]).filter(([, m]) => m !== null);
}

// drawBands lets a click, or Enter, on a value of the axis choose its points; the arrow keys walk along the values.
function drawBands(axis, objective, { groups, at, label, center, span }, rows) {
  const source = `value of ${axis.name}`;
  const chosen = selection.of(source);
  const inside = (i) => rows.filter((row) => at.get(axis.values[row]) === i);
  const bands = Array.from({ length: groups }, (_, i) => {
    const choose = () => {
      const members = inside(i);
      selection.set(chosen && members.length > 0 && chosen.has(members[0]) ? null : members, source);
    };
    return svg("rect", {
      class: "value-band", x: center(i) - span / 2, width: span, y: cell.top - 4, height: cell.height - cell.bottom - cell.top + 24, rx: 4, role: "button", tabindex: i === 0 ? 0 : -1,
      "data-value": `${axis.name} ${objective.name} ${i}`, "aria-label": `Choose the points with ${axis.name} ${formatAxisValue(label(i))}`, onclick: choose,
      onkeydown: (event) => walk(event, [...bands].reverse(), groups - 1 - i, choose),
    });
  });
  return svg("g", {}, bands);
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
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
