// The plot of two figures against each other.

const margin = { top: 26, right: 22, bottom: 52, left: 66 };
const hoverRadius = 26;
const mostVectors = 3000; // more dots are painted on a canvas
const mostErrorBars = 150;

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
  const frontiers = frontiersOf(rows, across, up);
  const frontier = frontiers.flatMap((f) => f.rows);
  const drawn = { series, frontiers, frontier, place, x, y, shown: new RowSet(visible.flatMap((s) => s.rows)), width, height, points: rows.length };
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${title(state.y)} against ${title(state.x)}` });
  root.append(drawGrid(state, x, y, width, height), drawRegion(state, frontiers, place, width, height), drawFrontierLines(state, frontiers, place));
  const canvas = rows.length > mostVectors ? html("canvas", { class: "dots", "aria-hidden": "true" }) : null;
  if (canvas) paintDots(canvas, visible, drawn);
  else root.append(drawPlotDots(visible, drawn));
  if (state.lines) root.append(drawSeriesLines(state, visible, place));
  if (membersOf) root.append(drawErrorBars(frontier.filter((row) => drawn.shown.has(row)).slice(0, mostErrorBars), drawn, across, up, "error-bar"));
  root.append(drawMarks(visible, frontier, place, on));
  drawn.cursor = svg("circle", { class: "cursor", r: 9, visibility: "hidden" });
  drawn.pin = svg("circle", { class: "pin", r: 10, visibility: "hidden" });
  drawn.bars = svg("g", { class: "hovered-bars" });
  drawn.brush = svg("rect", { class: "brush", visibility: "hidden" });
  drawn.errorBars = (row) => (membersOf && row !== null ? drawErrorBars([row], drawn, across, up, "error-bar strong") : svg("g"));
  root.append(drawn.brush, drawn.bars, drawn.pin, drawn.cursor);
  if (rows.length === 0) root.append(svg("text", { class: "empty", x: width / 2, y: height / 2 }, "No point has both figures."));
  element.querySelectorAll(":scope > svg, :scope > canvas").forEach((old) => old.remove());
  element.prepend(...[canvas, root].filter((layer) => layer));
  return drawn;
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
  const unit = (column) => (column.unit && width >= 460 ? svg("tspan", {}, `  ${column.unit}`) : null);
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

// looks of a dot that is not on the frontier, in the order in which they are drawn.
const dotLooks = ["infeasible", "dominated", "near"];

// dotLook names the look of a row; empty for the frontier's, which are marks of their own.
function dotLook(row, onFrontier) {
  if (infeasibleRows.has(row)) return "infeasible";
  if (onFrontier.has(row)) return "";
  return noiseRows.has(row) ? "near" : "dominated";
}

// sortDots calls back with each series' rows of one look, and whether they are chosen.
function sortDots(series, drawn, draw) {
  const onFrontier = new Set(drawn.frontier);
  for (const chosen of [false, true]) {
    for (const s of series) {
      const rows = Object.fromEntries(dotLooks.map((look) => [look, []]));
      for (const row of s.rows) {
        if (selection.touches(row) !== chosen) continue;
        const look = dotLook(row, onFrontier);
        if (look) rows[look].push(row);
      }
      for (const look of dotLooks) {
        if (rows[look].length) draw(s, look, rows[look], chosen);
      }
    }
  }
}

const dotPath = (s, look, row, x, y, r) => (look === "infeasible" ? missMark(row, x, y, r) : mark(s.shape, row, x, y, r));

// drawPlotDots draws each series' dots as a path.
function drawPlotDots(series, drawn) {
  const group = svg("g", {});
  sortDots(series, drawn, (s, look, rows, chosen) => {
    const d = rows.map((row) => dotPath(s, look, row, ...drawn.place(row), 3.4)).join("");
    group.append(svg("path", { class: `${look}${chosen ? "" : " unchosen"}`, fill: look === "infeasible" ? null : s.color, stroke: look === "infeasible" ? s.color : null, d }));
  });
  return group;
}

// paintDots stamps the dots onto a canvas, each kind from a picture of it; the more there are, the smaller.
function paintDots(canvas, series, drawn) {
  const ratio = paper.printing ? 3 : Math.max(1, devicePixelRatio || 1);
  const r = drawn.points > 30000 ? 2 : 2.7;
  [canvas.width, canvas.height] = [drawn.width * ratio, drawn.height * ratio];
  canvas.style.width = `${drawn.width}px`;
  const context = canvas.getContext("2d");
  const ink = getComputedStyle(document.body).color;
  sortDots(series, drawn, (s, look, rows, chosen) => {
    const stamps = new Map();
    context.globalAlpha = chosen ? 1 : 0.16;
    for (const row of rows) {
      const words = sourceWords(row);
      if (!stamps.has(words)) stamps.set(words, stamp(dotPath(s, look, row, 0, 0, r), look, chosen || look === "infeasible" ? s.color : ink, r, ratio));
      const { picture, size } = stamps.get(words);
      const [x, y] = drawn.place(row);
      context.drawImage(picture, Math.round((x - size / 2) * ratio), Math.round((y - size / 2) * ratio));
    }
  });
}

// stamp is the picture of one dot around its middle.
function stamp(d, look, color, r, ratio) {
  const size = Math.ceil(4 * r + 2);
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [size * ratio, size * ratio];
  const context = picture.getContext("2d");
  context.scale(ratio, ratio);
  context.translate(size / 2, size / 2);
  const path = new Path2D(d);
  [context.fillStyle, context.strokeStyle] = [color, color];
  if (look === "infeasible") {
    [context.globalAlpha, context.lineWidth] = [0.45, 1];
    context.stroke(path);
  } else {
    context.globalAlpha = look === "near" ? 0.75 : 0.32;
    context.fill(path);
  }
  return { picture, size };
}

// drawSeriesLines joins the points that no other of the same series and traffic dominates.
function drawSeriesLines(state, series, place) {
  const group = svg("g", {});
  for (const s of series) {
    for (const { rows } of splitByTraffic(s.rows.filter((row) => !infeasibleRows.has(row)))) {
      const own = frontierAmong(rows, [axisOf(state, "x"), axisOf(state, "y")]);
      if (own.length > 1) group.append(svg("path", { class: "series-line", stroke: s.color, d: toPath(own.map(place)) }));
    }
  }
  return group;
}

// drawErrorBars draws the 95 % intervals of points' means over their replicates.
function drawErrorBars(rows, drawn, across, up, look) {
  const group = svg("g", { class: look, "aria-hidden": "true" });
  let d = "";
  for (const row of rows) {
    const [px, py] = drawn.place(row);
    const ends = (scale, axis, from, to) => {
      const half = halfInterval(axis.column, row), middle = axis.values[row];
      const clip = (v) => Math.min(to, Math.max(from, Number.isFinite(v) ? v : from));
      return half > 0 ? [clip(scale(middle - half)), clip(scale(middle + half))] : null;
    };
    const wide = ends(drawn.x, across, margin.left, drawn.width - margin.right), high = ends(drawn.y, up, margin.top, drawn.height - margin.bottom);
    if (wide) d += `M${wide[0]} ${py}H${wide[1]}M${wide[0]} ${py - 3}v6M${wide[1]} ${py - 3}v6`;
    if (high) d += `M${px} ${high[0]}V${high[1]}M${px - 3} ${high[0]}h6M${px - 3} ${high[1]}h6`;
  }
  if (d) group.append(svg("path", { d }));
  return group;
}

// drawMarks draws the frontier's points as elements of their own: Tab reaches the first, the arrows walk along.
function drawMarks(series, frontier, place, on) {
  const group = svg("g", { role: "list", "aria-label": "Points on the frontier" });
  const look = new Map(series.flatMap((s) => s.rows.map((row) => [row, s])));
  const marks = frontier.filter((row) => look.has(row)).map((row, i) => {
    const s = look.get(row);
    return svg("path", {
      class: `mark-frontier${selection.touches(row) ? "" : " unchosen"}`, d: mark(s.shape, row, ...place(row), 6), fill: s.color, tabindex: i === 0 ? 0 : -1, role: "listitem",
      "data-row": row, "aria-label": `On the frontier: ${configuration(row)}${sourceWords(row) ? ` (${sourceWords(row)})` : ""}`,
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
  const at = pixelsOf(drawn);
  let best = null, fewest = hoverRadius * hoverRadius;
  for (let i = 0; i < at.rows.length; i++) {
    const dx = at.x[i] - px, dy = at.y[i] - py;
    const distance = (dx * dx + dy * dy) * at.weight[i];
    if (distance < fewest) [best, fewest] = [at.rows[i], distance];
  }
  return best;
}

// pixelsOf holds the places of the points that show, for the pointer, which asks for them all the time.
function pixelsOf(drawn) {
  if (!drawn.pixels) {
    const onFrontier = new Set(drawn.frontier);
    const rows = [...drawn.shown];
    const at = { rows, x: new Float32Array(rows.length), y: new Float32Array(rows.length), weight: new Float32Array(rows.length) };
    rows.forEach((row, i) => {
      [at.x[i], at.y[i]] = drawn.place(row);
      at.weight[i] = (onFrontier.has(row) ? 0.35 : 1) * (selection.touches(row) ? 1 : 4);
    });
    drawn.pixels = at;
  }
  return drawn.pixels;
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
