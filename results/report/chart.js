// The plot of two figures against each other.

const margin = { top: 26, right: 22, bottom: 52, left: 66 };
const hoverRadius = 26;

// plotted returns the rows of the candidates that have both figures.
function plotted(state) {
  const x = means(state.x), y = means(state.y);
  return candidateRows.filter((row) => x[row] !== null && y[row] !== null);
}

// drawChart redraws the plot into its element and returns what the pointer and the keyboard need.
function drawChart(element, state, on) {
  const width = Math.max(320, element.clientWidth);
  const height = paper.printing ? 330 : Math.round(Math.min(600, Math.max(380, width * 0.6)));
  const rows = plotted(state);
  const across = axisOf(state, "x"), up = axisOf(state, "y");
  const x = makeScale(rows.map((r) => across.values[r]), margin.left, width - margin.right, state.logX);
  const y = makeScale(rows.map((r) => up.values[r]), height - margin.bottom, margin.top, state.logY);
  const place = (row) => [x(across.values[row]), y(up.values[row])];
  const series = makeSeries(state.color, rows);
  const visible = series.filter((s) => !state.hidden.has(s.label));
  const shown = new Set(visible.flatMap((s) => s.rows));
  const frontiers = frontiersOf(rows, across, up);
  const frontier = frontiers.flatMap((f) => f.rows);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${title(state.y)} against ${title(state.x)}` });
  root.append(drawGrid(state, x, y, width, height), drawRegion(state, frontiers, place, width, height), drawFrontierLines(state, frontiers, place),
    drawPoints(visible, new Set(frontier), place));
  if (state.lines) root.append(drawSeriesLines(state, visible, place));
  root.append(drawMarks(visible, frontier, place, on));
  const cursor = svg("circle", { class: "cursor", r: 9, visibility: "hidden" });
  const pin = svg("circle", { class: "pin", r: 10, visibility: "hidden" });
  root.append(pin, cursor);
  if (rows.length === 0) root.append(svg("text", { class: "empty", x: width / 2, y: height / 2 }, "No point has both figures."));
  element.querySelector("svg")?.remove();
  element.prepend(root);
  return { series, frontiers, frontier, place, shown, cursor, pin, width, height };
}

// axisOf is a column with its direction in the plot.
function axisOf(state, axis) {
  return { column: state[axis], values: means(state[axis]), maximize: state[axis === "x" ? "moreX" : "moreY"] };
}

function drawGrid(state, x, y, width, height) {
  const bottom = height - margin.bottom, right = width - margin.right;
  const group = svg("g", {});
  const grid = svg("g", { class: "grid" });
  for (const v of x.ticks(Math.max(3, Math.round(width / 110)))) {
    grid.append(svg("line", { x1: x(v), x2: x(v), y1: margin.top, y2: bottom }));
    group.append(svg("text", { x: x(v), y: bottom + 19, "text-anchor": "middle" }, formatTick(v)));
  }
  for (const v of y.ticks(Math.max(3, Math.round(height / 75)))) {
    grid.append(svg("line", { x1: margin.left, x2: right, y1: y(v), y2: y(v) }));
    group.append(svg("text", { x: margin.left - 10, y: y(v) + 4, "text-anchor": "end" }, formatTick(v)));
  }
  group.prepend(grid);
  const unit = (column) => (column.unit ? svg("tspan", {}, `  ${column.unit}`) : null);
  group.append(
    svg("line", { class: "axis-line", x1: margin.left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { class: "axis-title", x: margin.left, y: 12 }, title(state.y), unit(state.y)),
    svg("text", { class: "axis-title", x: right, y: height - 10, "text-anchor": "end" }, title(state.x), unit(state.x)),
    svg("text", { class: "better", x: state.moreX ? right - 8 : margin.left + 8, y: state.moreY ? margin.top + 15 : bottom - 9, "text-anchor": state.moreX ? "end" : "start" },
      state.moreX ? `better ${state.moreY ? "↗" : "↘"}` : `${state.moreY ? "↖" : "↙"} better`),
  );
  return group;
}

const toPath = (points) => points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

// drawRegion shades what a single frontier leaves behind, from its ends straight to the worse edges of the plot.
function drawRegion(state, frontiers, place, width, height) {
  if (frontiers.length !== 1 || frontiers[0].rows.length === 0) return svg("g");
  const points = frontiers[0].rows.map(place);
  const worstY = state.moreY ? height - margin.bottom : margin.top;
  const worstX = state.moreX ? margin.left : width - margin.right;
  const ends = [[worstX, points[points.length - 1][1]], [worstX, worstY], [points[0][0], worstY]];
  return svg("path", { class: "region", d: `${toPath([...points, ...ends])}z` });
}

// drawFrontierLines joins each frontier: a soft band under the lines of the series, a thin line without them.
function drawFrontierLines(state, frontiers, place) {
  return svg("g", {}, frontiers.filter((f) => f.rows.length > 1).map((f) =>
    svg("path", { class: state.lines ? "frontier-line band" : "frontier-line", d: toPath(f.rows.map(place)) }, traffic.length ? svg("title", {}, f.label) : null)));
}

// drawPoints draws each series' points as one path, which stays quick for tens of thousands.
function drawPoints(series, frontier, place) {
  const group = svg("g", {});
  for (const s of series) {
    let solid = "", crosses = "";
    for (const row of s.rows) {
      if (infeasibleRows.has(row)) crosses += missMark(row, ...place(row), 3.4);
      else if (!frontier.has(row)) solid += mark(s.shape, row, ...place(row), 3.4);
    }
    if (crosses) group.append(svg("path", { class: "infeasible", stroke: s.color, d: crosses }));
    if (solid) group.append(svg("path", { class: "dominated", fill: s.color, d: solid }));
  }
  return group;
}

// drawSeriesLines joins the points that no other of the same series and traffic dominates.
function drawSeriesLines(state, series, place) {
  const group = svg("g", {});
  for (const s of series) {
    for (const { rows } of splitByTraffic(s.rows.filter((row) => !infeasibleRows.has(row)))) {
      const own = pairFrontier(rows, axisOf(state, "x"), axisOf(state, "y"));
      if (own.length > 1) group.append(svg("path", { class: "series-line", stroke: s.color, d: toPath(own.map(place)) }));
    }
  }
  return group;
}

// drawMarks draws the frontier's points as elements of their own: Tab reaches the first, the arrows walk along.
function drawMarks(series, frontier, place, on) {
  const group = svg("g", { role: "list", "aria-label": "Points on the frontier" });
  const look = new Map(series.flatMap((s) => s.rows.map((row) => [row, s])));
  const marks = frontier.filter((row) => look.has(row)).map((row, i) => {
    const s = look.get(row);
    return svg("path", {
      class: "mark-frontier", d: mark(s.shape, row, ...place(row), 6), fill: s.color, tabindex: i === 0 ? 0 : -1, role: "listitem",
      "data-row": row, "aria-label": `On the frontier: ${configuration(row)}${isAnalytic(row) ? " (analytic timing)" : ""}`,
      onfocus: () => on.show(row), onblur: () => on.show(null), onkeydown: (event) => walk(event, marks, i, () => on.pin(row)),
    });
  });
  group.append(...marks);
  return group;
}

function walk(event, marks, at, pick) {
  const target = { ArrowRight: at - 1, ArrowUp: at - 1, ArrowLeft: at + 1, ArrowDown: at + 1, Home: 0, End: marks.length - 1 }[event.key];
  if (event.key === "Enter" || event.key === " ") pick();
  else if (target === undefined) return;
  event.preventDefault();
  marks[target]?.focus();
}

// nearest returns the drawn row closest to a pixel, or null when none is near; the frontier wins close calls.
function nearest(drawn, px, py) {
  const frontier = new Set(drawn.frontier);
  let best = null, fewest = hoverRadius * hoverRadius;
  for (const row of drawn.shown) {
    const [x, y] = drawn.place(row);
    const distance = ((x - px) ** 2 + (y - py) ** 2) * (frontier.has(row) ? 0.35 : 1);
    if (distance < fewest) [best, fewest] = [row, distance];
  }
  return best;
}

function moveCircle(circle, drawn, anyRow) {
  const row = standsFor(anyRow);
  const here = row !== null && drawn.shown.has(row);
  circle.setAttribute("visibility", here ? "visible" : "hidden");
  if (!here) return;
  const [x, y] = drawn.place(row);
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
}
