// What happened over time at some points of the study, laid over each other: a plot a figure, with one time for all.

const timelineSize = { height: 170, left: 50, right: 12, top: 10, bottom: 24 };

const timelineColor = (i) => wordColors[isDark() ? "dark" : "light"][i % 7];
const timelineDash = (i) => (i >= 7 ? "5 3" : null);

// makeTimelines puts the plots into their element; null for reports that hold none.
function makeTimelines(element) {
  const points = report.timelines || [];
  if (points.length === 0) return null;
  const view = { at: null, end: points.reduce((a, p) => Math.max(a, p.end), 0), drawn: [] };
  const keys = html("ul", { class: "timeline-keys" }), plots = html("div", { class: "timeline-plots" });
  fill(element, keys, plots);
  const names = [...new Map(points.flatMap((p) => p.figures.map((f) => [f.name, f]))).values()];
  const lit = (point) => (standsFor(pinned()) === standsFor(point.row) ? "lit" : points.some((p) => standsFor(p.row) === standsFor(pinned())) || !selection.touches(standsFor(point.row)) ? "faint" : "");
  const moveTo = (at) => {
    view.at = at;
    for (const plot of view.drawn) plot.moveTo(at);
  };
  function redraw() {
    const columns = Math.max(1, Math.min(3, Math.floor(element.clientWidth / 390))), width = Math.floor((element.clientWidth - 22 * (columns - 1)) / columns);
    plots.style.gridTemplateColumns = `repeat(${columns}, ${width}px)`;
    fill(keys, points.map((p, i) => html("li", {}, html("button", { type: "button", class: lit(p), "aria-pressed": String(lit(p) === "lit"), title: "Show this point", onclick: () => pin(p.row) },
      svg("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" }, svg("path", { d: "M0 4H20", stroke: timelineColor(i), "stroke-width": 2.5, "stroke-dasharray": timelineDash(i) })), configuration(p.row) || `point ${p.row + 1}`))));
    const focused = plots.contains(document.activeElement) ? document.activeElement.dataset.figure : undefined;
    view.drawn = names.map((figure) => drawTimeline(figure, points, view, { width, lit, moveTo }));
    fill(plots, view.drawn.map((plot) => plot.element));
    if (focused !== undefined) plots.querySelector(`[data-figure="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    moveTo(view.at);
  }
  const ask = drawnWhenSeen(element, redraw);
  onChange(["pin", "selection", "theme"], ask);
  onResize(element, ask);
  ask();
  return { points };
}

// figureOf is a point's figure by name, or undefined.
const figureOf = (point, name) => point.figures.find((f) => f.name === name);

// timelineValue is a point's figure in the window that holds a time; null outside of the run.
function timelineValue(point, figure, at) {
  if (!figure || at > point.end) return null;
  let low = 0, high = point.at.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (point.at[middle] <= at) low = middle;
    else high = middle;
  }
  return figure.values[low] ?? null;
}

function drawTimeline({ name, title: heading, unit, note }, points, view, { width, lit, moveTo }) {
  const { height, left, right, top, bottom } = timelineSize;
  const values = points.flatMap((p) => figureOf(p, name)?.values || []).filter((v) => v !== null);
  const log = spansDecades(values);
  const y = makeScale(log ? values : [...values, 0, values.every((v) => v === 0) ? 1 : 0], height - bottom, top, log);
  const x = (t) => left + (t / (view.end || 1)) * (width - left - right);
  const root = svg("svg", { class: "timeline", width, height, tabindex: 0, role: "img", "data-figure": name, "aria-label": `${heading}${unit ? `, ${unit}` : ""}, over time` });
  const grid = svg("g", { class: "grid" });
  for (const v of y.ticks(3)) {
    grid.append(svg("line", { x1: left, x2: width - right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: left - 6, y: y(v) + 3.5, "text-anchor": "end" }, formatTick(v)));
  }
  for (const t of linearTicks(0, view.end || 1, Math.max(3, width / 90), false)) root.append(svg("text", { x: x(t), y: height - 7, "text-anchor": "middle" }, `${formatTick(t)} s`));
  root.prepend(grid);
  const order = points.map((p, i) => [p, i]).sort(([a], [b]) => (lit(a) === "lit") - (lit(b) === "lit"));
  for (const [point, i] of order) {
    const figure = figureOf(point, name);
    if (figure) root.append(svg("path", { class: `timeline-line ${lit(point)}`, stroke: timelineColor(i), "stroke-dasharray": timelineDash(i), d: stepsPath(point, figure.values, x, y) }));
  }
  const now = svg("line", { class: "timeline-now", y1: top, y2: height - bottom, visibility: "hidden" });
  root.append(now);
  const words = html("p", { class: "timeline-values", "aria-live": "polite" }, note);
  listenForTime(root, points, view, x, moveTo);
  return {
    element: html("div", { class: "timeline-plot" }, html("h3", {}, heading, unit ? html("small", {}, unit) : null, log ? html("small", {}, "logarithmic") : null), words, root),
    moveTo(at) {
      now.setAttribute("visibility", at === null ? "hidden" : "visible");
      if (at === null) return fill(words, note || "\u00a0");
      now.setAttribute("x1", x(at));
      now.setAttribute("x2", x(at));
      return fill(words, html("span", {}, `${formatNumber(Number(at.toPrecision(4)))} s`), points.map((p, i) => [p, i, timelineValue(p, figureOf(p, name), at)]).filter(([, , v]) => v !== null)
        .map(([p, i, v]) => html("span", { class: lit(p), style: `border-color:${timelineColor(i)}` }, formatNumber(v))));
    },
  };
}

// stepsPath draws a figure that holds for the whole of its window.
function stepsPath(point, values, x, y) {
  let path = "", down = false;
  values.forEach((v, i) => {
    if (v === null || (y.log && v <= 0)) {
      down = false;
      return;
    }
    path += down ? `V${y(v).toFixed(1)}` : `M${x(point.at[i]).toFixed(1)} ${y(v).toFixed(1)}`;
    path += `H${x(i + 1 < point.at.length ? point.at[i + 1] : point.end).toFixed(1)}`;
    down = true;
  });
  return path;
}

// listenForTime moves the time of all plots with the pointer and with the arrow keys.
function listenForTime(root, points, view, x, moveTo) {
  const moments = () => points.reduce((a, p) => (p.at.length > a.length ? p.at : a), []);
  root.addEventListener("pointermove", (event) => {
    const at = ((event.clientX - root.getBoundingClientRect().left - x(0)) / (x(view.end) - x(0))) * view.end;
    moveTo(Math.min(view.end, Math.max(0, at)));
  });
  root.addEventListener("pointerleave", () => moveTo(null));
  root.addEventListener("blur", () => moveTo(null));
  root.addEventListener("keydown", (event) => {
    const times = moments(), here = view.at === null ? -1 : times.findLastIndex((t) => t <= view.at);
    const next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: times.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    moveTo(times[Math.min(times.length - 1, Math.max(0, next))]);
  });
}
