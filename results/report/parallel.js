// Parallel coordinates: an axis a column, a line a point. A stretch of an axis chooses the points whose lines cross it.

const parallelSize = { height: 330, head: 90, top: 12, bottom: 12, left: 76, right: 58, narrowest: 104 };
const usualParallelAxes = 9;
const mostLines = 20_000;

// usualParallelColumns are the axes first, then what is optimised and bounded.
function usualParallelColumns() {
  const named = [...report.objectives.map((o) => o.name), ...report.constraints.map((c) => c.column), "mean_ttft_ms", "mean_itl_ms"];
  const figures = [...new Set(named.map((name) => columnsByName.get(name)))].filter((c) => c && isNumeric(c) && distinct(c).length > 1);
  const settings = variedAxes.slice(0, Math.max(2, usualParallelAxes - Math.min(4, figures.length)));
  return [...new Set([...settings, ...figures])].slice(0, usualParallelAxes);
}

// parallelChoices are the columns that can be an axis.
const parallelChoices = () => report.columns.filter((c) => c.name !== "id" && distinct(c).length > 1 && (isNumeric(c) || distinct(c).length <= 60));

// makeParallel puts the chart into its element and returns { columns, choose }, or null without two columns to draw.
function makeParallel(element) {
  const view = { columns: usualParallelColumns(), ranges: new Map(), axes: new Map(), hovered: null };
  if (view.columns.length < 2 || candidateRows.length === 0) return null;
  const axisFor = (column) => {
    if (!view.axes.has(column)) view.axes.set(column, parallelAxis(column));
    return view.axes.get(column);
  };
  const all = html("canvas", { class: "lines-all", "aria-hidden": "true" }), chosen = html("canvas", { class: "lines-chosen", "aria-hidden": "true" });
  const heads = html("div", { class: "parallel-heads" }), tip = html("div", { class: "tooltip", role: "status", hidden: true });
  const root = svg("svg", { role: "group", "aria-label": "Parallel coordinates" });
  const stage = html("div", { class: "parallel-stage" }, heads, all, chosen, root);
  fill(element, html("div", { class: "parallel-scroll" }, stage), tip);
  const place = new Map(candidateRows.map((row, i) => [row, i]));
  let layout = null;
  const painters = { all() {}, chosen() {} };

  // points of a row's line; a gap where it has no value.
  const line = (row) => view.columns.map((c, i) => [layout.x(i), layout.y(axisFor(c).shares[place.get(row)])]);

  function selectByRanges() {
    const ranges = [...view.ranges];
    selection.set(ranges.length === 0 ? null : candidateRows.filter((row, i) => ranges.every(([c, range]) => inRange(axisFor(c).shares[i], range))), "parallel");
  }
  const brush = (column) => (range, dragging) => {
    if (range === null) view.ranges.delete(column);
    else if (range !== undefined) view.ranges.set(column, range);
    drawAxes();
    if (range !== undefined && !dragging) selectByRanges();
    else if (range !== undefined) soon(selectByRanges);
  };
  const reorder = (from, to) => {
    if (to < 0 || to >= view.columns.length || from === to) return;
    view.columns.splice(to, 0, ...view.columns.splice(from, 1));
    redraw();
    heads.children[to].focus();
  };

  function drawAxes() {
    const focused = document.activeElement?.dataset?.handle;
    fill(root, view.columns.map((c, i) => drawParallelAxis(axisFor(c), view.ranges.get(c) || null, { x: layout.x(i), y: layout.y }, { brush: brush(c) })),
      svg("path", { class: "line-pinned", visibility: "hidden" }), svg("path", { class: "line-hovered", visibility: "hidden" }));
    if (focused) root.querySelector(`[data-handle="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    mark("line-pinned", pinned());
    mark("line-hovered", view.hovered);
  }
  function mark(name, anyRow) {
    const path = root.querySelector(`.${name}`), row = standsFor(anyRow ?? null);
    const d = row === null ? "" : lineSegments(line(row)).map(toPath).join("");
    path.setAttribute("visibility", d ? "visible" : "hidden");
    path.setAttribute("d", d);
  }
  function drawHeads() {
    fill(heads, view.columns.map((c, i) => parallelHead(c, i, layout, reorder)));
  }
  // drawLines draws all lines, which a selection only fades, and drawChosen the chosen ones above them.
  function drawLines() {
    layout.rows = candidateRows.filter((row) => statusOf(row) === "ok" && colours.shown(row));
    painters.all();
    painters.all = paintLines(all, layout, lineStyles(thinned(layout.rows)), line);
    drawChosen();
  }
  function drawChosen() {
    layout.drawn = selection.active() ? layout.rows.filter((row) => selection.touches(row)) : layout.rows;
    all.classList.toggle("faded", selection.active());
    painters.chosen();
    painters.chosen = paintLines(chosen, layout, selection.active() ? lineStyles(thinned(layout.drawn)) : [], line);
    element.dataset.lines = layout.drawn.length;
  }
  function redraw() {
    layout = parallelLayout(element, view.columns.length);
    stage.style.width = `${layout.width}px`;
    for (const [name, value] of [["width", layout.width], ["height", parallelSize.height], ["viewBox", `0 0 ${layout.width} ${parallelSize.height}`]]) root.setAttribute(name, value);
    drawHeads();
    drawAxes();
    drawLines();
  }
  function hover(row, event) {
    view.hovered = row;
    mark("line-hovered", row);
    tip.hidden = row === null;
    if (row === null) return;
    fill(tip, pointTip(row, view.columns));
    placeBeside(tip, element, event);
  }
  stage.addEventListener("pointermove", (event) => { if (event.buttons === 0 && layout) hover(nearestLine(layout, view.columns.map(axisFor), place, stage, event), event); });
  stage.addEventListener("pointerleave", () => hover(null));
  stage.addEventListener("click", (event) => {
    if (view.hovered !== null && !event.target.closest(".brush-area, button")) pin(view.hovered);
  });
  onChange(["selection"], () => {
    if (selection.of("parallel") === null && view.ranges.size > 0) {
      view.ranges.clear();
      if (layout) drawAxes();
    }
  });
  const ask = drawnWhenSeen(element, redraw);
  const askForLines = drawnWhenSeen(element, () => { if (layout) drawLines(); }), askForChosen = drawnWhenSeen(element, () => { if (layout) drawChosen(); });
  onChange(["bounds", "colours", "theme"], askForLines);
  onChange(["selection"], askForChosen);
  onChange(["pin"], () => { if (layout) mark("line-pinned", pinned()); });
  onResize(element, ask);
  ask();
  return {
    columns: () => view.columns,
    choose(columns) {
      for (const column of view.ranges.keys()) if (!columns.includes(column)) view.ranges.delete(column);
      view.columns = columns;
      redraw();
      selectByRanges();
    },
  };
}

// parallelLayout spreads the axes over the width, or over more than it when they are many: then the chart scrolls.
function parallelLayout(element, axes) {
  const { left, right, narrowest, height, top, bottom } = parallelSize;
  const width = Math.max(element.clientWidth, left + right + narrowest * (axes - 1));
  const gap = (width - left - right) / Math.max(1, axes - 1);
  return { width, gap, x: (i) => left + i * gap, y: (share) => height - bottom - share * (height - top - bottom) };
}

// parallelHead names an axis; it is dragged, or moved with the arrow keys, to another place.
function parallelHead(column, at, layout, reorder) {
  const width = Math.min(layout.gap - 10, 190);
  const head = html("button", {
    type: "button", class: "parallel-head", style: `left:${layout.x(at) - width / 2}px;width:${width}px`, "data-column": column.name,
    title: `${column.name}: ${column.doc || ""}\nDrag it, or press the arrow keys, to move the axis.`, "aria-label": `${title(column)}, axis ${at + 1}; the arrow keys move it`,
    onkeydown: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      reorder(at, at + by);
    },
  }, html("span", {}, spaced(title(column))), html("small", {}, [column.unit, column.role === "metric" ? (maximizes(column) ? "↑ better" : "↓ better") : ""].filter((t) => t).join(" · ")));
  head.addEventListener("pointerdown", (event) => {
    const from = event.clientX;
    head.setPointerCapture(event.pointerId);
    head.onpointermove = (e) => { head.style.translate = `${e.clientX - from}px 0`; };
    head.onpointerup = (e) => {
      [head.onpointermove, head.onpointerup] = [null, null];
      head.style.translate = "";
      reorder(at, Math.max(0, at + Math.round((e.clientX - from) / layout.gap)));
    };
  });
  return head;
}

// thinned keeps at most mostLines rows, evenly.
const thinned = (rows) => (rows.length <= mostLines ? rows : Array.from({ length: mostLines }, (_, i) => rows[Math.floor((i * rows.length) / mostLines)]));

// lineStyles orders the lines: what misses the bounds at the bottom, the frontier on top, and between them an even choice
// first, so that what is drawn looks like the whole soon.
function lineStyles(rows) {
  const alpha = Math.min(0.7, Math.max(0.04, 7 / Math.sqrt(rows.length)));
  const faint = getComputedStyle(document.body).getPropertyValue("--faint").trim();
  const style = (row) => (frontierRows.has(row) ? { rank: 2, color: colours.of(row), alpha: 0.95, width: 1.9 }
    : infeasibleRows.has(row) ? { rank: 0, color: faint, alpha: alpha * 0.55, width: 1 } : { rank: 1, color: colours.of(row), alpha, width: 1.1 });
  const choices = Math.ceil(rows.length / 600);
  return rows.map((row, i) => ({ row, choice: i % choices, ...style(row) })).sort((a, b) => a.rank - b.rank || a.choice - b.choice || (a.color < b.color ? -1 : a.color > b.color ? 1 : a.row - b.row));
}

// lineSegments cuts a line where a value is missing.
function lineSegments(points) {
  const out = [[]];
  for (const point of points) {
    if (Number.isNaN(point[1])) out.push([]);
    else out[out.length - 1].push(point);
  }
  return out.filter((segment) => segment.length > 0);
}

const linesAtOnce = 24;

// paintLines draws lines, as many a frame as frames stay short with, and returns what stops it. A browser may draw a frame
// long after the calls for it return, so the time between frames counts. On paper there is no next frame.
function paintLines(canvas, layout, lines, line) {
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(layout.width * dense);
  canvas.height = Math.round(parallelSize.height * dense);
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${parallelSize.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.lineJoin = "round";
  let at = 0, stopped = false, batch = 300, before = performance.now();
  const stroke = () => {
    const first = lines[at];
    [pen.strokeStyle, pen.globalAlpha, pen.lineWidth] = [first.color, first.alpha, first.width];
    pen.beginPath();
    for (const end = at + linesAtOnce; at < lines.length && at < end && lines[at].rank === first.rank && lines[at].color === first.color; at++) traceLine(pen, line(lines[at].row));
    pen.stroke();
  };
  const frame = (now) => {
    if (stopped) return;
    if (at > 0) batch = now - before > 34 ? Math.max(100, batch / 2) : Math.min(6000, batch * 1.5);
    before = now;
    const end = paper.printing ? lines.length : at + batch;
    while (at < lines.length && at < end) stroke();
    if (at < lines.length) requestAnimationFrame(frame);
  };
  frame(before);
  return () => { stopped = true; };
}

function traceLine(pen, points) {
  let down = false;
  for (const [x, y] of points) {
    if (Number.isNaN(y)) down = false;
    else if (down) pen.lineTo(x, y);
    else {
      pen.moveTo(x, y);
      down = true;
    }
  }
}

const lineReach = 9;

// nearestLine is the row whose line passes closest to the pointer, or null.
function nearestLine(layout, axes, place, stage, event) {
  if (event.target.closest(".parallel-heads")) return null;
  const box = stage.getBoundingClientRect();
  const px = event.clientX - box.left, py = event.clientY - box.top - parallelSize.head;
  const i = Math.min(axes.length - 2, Math.max(0, Math.floor((px - layout.x(0)) / layout.gap)));
  const t = Math.min(1, Math.max(0, (px - layout.x(i)) / layout.gap));
  let best = null, least = lineReach;
  for (const row of layout.drawn) {
    const n = place.get(row);
    const distance = Math.abs(layout.y(axes[i].shares[n] * (1 - t) + axes[i + 1].shares[n] * t) - py);
    if (distance < least) [best, least] = [row, distance];
  }
  return best;
}
