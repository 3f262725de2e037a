// One plot over time: its series, its levels, the axis of time, and its key with the figures at the cursor.

const data = JSON.parse(byID("data").textContent);
const plotMargin = { top: 8, right: 12, bottom: 22, left: 54 };
const plotHeight = 168;
const colours = 8;

// view is what all plots share: the time shown and the time of the cursor, in seconds, and the series that are hidden.
const view = { from: 0, to: data.end, cursor: null, hidden: new Set() };

const colourOf = (s) => `var(--c${s.colour % colours})`;
const stepped = (s) => s.look === "steps" || s.look === "dashsteps";
const dashed = (s) => s.look === "dash" || s.look === "dashsteps";
const hiddenKey = (chart, s) => (data.linked ? s.name : `${chart.title}\n${s.name}`);

// atOrBefore is the place of the last time that is not after t, or -1.
function atOrBefore(times, t) {
  let low = -1, high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= t + 1e-9) low = middle;
    else high = middle - 1;
  }
  return low;
}

// valueAt is a series' figure at a time: the latest one, or the nearest one when they are joined by lines.
function valueAt(s, t) {
  const times = data.times[s.times];
  let at = atOrBefore(times, t);
  if (!stepped(s) && at + 1 < times.length && (at < 0 || times[at + 1] - t < t - times[at])) at++;
  const value = s.values[at - s.from];
  if (value !== undefined && value !== null) return value;
  return stepped(s) && at - s.from >= s.values.length ? s.values[s.values.length - 1] : null;
}

// clockTicks marks the axis of time: round seconds, or hours and minutes when it is long.
function clockTicks(from, to, count) {
  const rough = (to - from) / count;
  if (to <= 7200) return linearTicks(from, to, count, false);
  const step = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].find((s) => s >= rough) || Math.ceil(rough / 86400) * 86400;
  const ticks = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) ticks.push(i * step);
  return ticks;
}

function clock(t) {
  if (data.end <= 7200) return `${Number(t.toFixed(1)).toLocaleString("en-US")} s`;
  const whole = Math.floor(t);
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
const clockLabel = (t) => (data.end <= 7200 ? formatTick(t) : clock(t).replace(/:00$/, ""));

// timeScale maps seconds to pixels of a plot, and back with invert.
function timeScale(width) {
  const left = plotMargin.left, span = Math.max(view.to - view.from, 1e-9), length = width - plotMargin.right - left;
  const scale = (t) => left + ((t - view.from) / span) * length;
  scale.invert = (px) => Math.min(view.to, Math.max(view.from, view.from + ((px - left) / length) * span));
  return scale;
}

function drawTimeAxis(root, x, width, bottom, top) {
  const grid = svg("g", { class: "grid" });
  root.append(grid);
  for (const t of clockTicks(view.from, view.to, Math.max(3, width / 90))) {
    grid.append(svg("line", { x1: x(t), x2: x(t), y1: top, y2: bottom }));
    root.append(svg("text", { x: x(t), y: bottom + 15, "text-anchor": "middle" }, clockLabel(t)));
  }
  return grid;
}

// shownValues are the figures that the vertical scale must hold.
function shownValues(chart, log) {
  const out = [];
  for (const s of chart.series) {
    if (view.hidden.has(hiddenKey(chart, s))) continue;
    const times = data.times[s.times];
    const first = stepped(s) ? atOrBefore(times, view.from) : atOrBefore(times, view.from) - 1;
    for (let i = Math.max(0, first - s.from); i < s.values.length && times[i + s.from] <= view.to; i++) {
      if (s.values[i] !== null && (!log || s.values[i] > 0)) out.push(s.values[i]);
    }
  }
  return out;
}

// levelFits keeps a level that is far above all figures from flattening them.
const levelFits = (value, top) => top === 0 || value <= 4 * top;

function verticalScale(chart, log) {
  const values = shownValues(chart, log);
  const top = values.reduce((a, b) => Math.max(a, b), 0);
  const levels = chart.levels.filter((l) => levelFits(l.value, top)).map((l) => l.value);
  const all = [...values, ...levels];
  if (!log) all.push(0);
  if (all.every((v) => v === 0)) all.push(1);
  return makeScale(all, plotHeight - plotMargin.bottom, plotMargin.top, log);
}

function seriesPath(s, x, y, floor) {
  const times = data.times[s.times];
  let path = "", before = null;
  const up = (v) => (y.log && v <= 0 ? floor : y(v)).toFixed(1);
  s.values.forEach((value, i) => {
    if (value === null) {
      if (stepped(s) && before !== null) path += `H${x(times[i + s.from]).toFixed(1)}`;
      before = null;
      return;
    }
    const px = x(times[i + s.from]).toFixed(1);
    if (before === null) path += `M${px} ${up(value)}`;
    else if (!stepped(s)) path += `L${px} ${up(value)}`;
    else path += value === before ? "" : `H${px}V${up(value)}`;
    before = value;
  });
  if (stepped(s) && before !== null) path += `H${x(s.from + s.values.length >= times.length ? data.end : times[s.from + s.values.length]).toFixed(1)}`;
  return path;
}

const diamond = (px, py, r) => `M${px.toFixed(1)} ${(py - r).toFixed(1)}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`;

// dotsPath marks the values of a series where they are few enough to be told apart.
function dotsPath(s, x, y, width) {
  if (stepped(s)) return "";
  const times = data.times[s.times];
  const inside = s.values.map((value, i) => [times[i + s.from], value]).filter(([t, value]) => value !== null && t >= view.from && t <= view.to && (!y.log || value > 0));
  if (s.look !== "marks" && inside.length > width / 9) return "";
  return inside.map(([t, value]) => diamond(x(t), y(value), s.look === "marks" ? 4 : 2.6)).join("");
}

// drawPlot returns the drawing of a chart at the time shown.
function drawPlot(chart, width, log, id) {
  const bottom = plotHeight - plotMargin.bottom, right = width - plotMargin.right;
  const x = timeScale(width), y = verticalScale(chart, log);
  const root = svg("svg", { class: "timeplot", height: plotHeight, viewBox: `0 0 ${width} ${plotHeight}`, tabindex: 0, role: "img", "aria-label": `${chart.title}${chart.unit ? `, ${chart.unit}` : ""}, over time` });
  const grid = drawTimeAxis(root, x, width, bottom, plotMargin.top);
  for (const v of y.ticks(4)) {
    grid.append(svg("line", { x1: plotMargin.left, x2: right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: plotMargin.left - 7, y: y(v) + 4, "text-anchor": "end" }, formatTick(v)));
  }
  root.append(svg("clipPath", { id }, svg("rect", { x: plotMargin.left, y: 0, width: right - plotMargin.left, height: plotHeight })));
  const inside = svg("g", { "clip-path": `url(#${id})` });
  for (const l of chart.levels) {
    if (y(l.value) < plotMargin.top - 1) {
      inside.append(svg("text", { class: "level-name", x: right - 4, y: plotMargin.top + 9, "text-anchor": "end" }, `${l.name} ↑`));
      continue;
    }
    inside.append(svg("line", { class: "level", x1: plotMargin.left, x2: right, y1: y(l.value), y2: y(l.value) }),
      svg("text", { class: "level-name", x: right - 4, y: y(l.value) - 4 < 14 ? y(l.value) + 12 : y(l.value) - 4, "text-anchor": "end" }, l.name));
  }
  const shown = chart.series.filter((s) => !view.hidden.has(hiddenKey(chart, s)));
  for (const s of shown) {
    if (s.look !== "marks") inside.append(svg("path", { class: dashed(s) ? "line dashed" : "line", stroke: colourOf(s), d: seriesPath(s, x, y, bottom) }));
    inside.append(svg("path", { class: "dot", fill: colourOf(s), d: dotsPath(s, x, y, width) }));
  }
  root.append(inside, svg("rect", { class: "frame", x: plotMargin.left, y: plotMargin.top, width: right - plotMargin.left, height: bottom - plotMargin.top }));
  return root;
}

// swatch shows how a series looks.
function swatch(s) {
  const shape = s.look === "marks" ? svg("path", { fill: colourOf(s), d: diamond(10, 4, 4) }) : svg("path", { stroke: colourOf(s), "stroke-width": 2, fill: "none", "stroke-dasharray": dashed(s) ? "5 3" : null, d: "M0 4H20" });
  return svg("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" }, shape);
}

// makePlot puts a chart into the page and returns what redraws it and what follows the cursor.
function makePlot(chart, number, host, redrawAll) {
  const keys = chart.series.map((s) => {
    const figure = html("output", {});
    const button = html("button", { type: "button", title: "Show or hide", onclick: () => {
      const key = hiddenKey(chart, s);
      if (!view.hidden.delete(key)) view.hidden.add(key);
      redrawAll();
    } }, swatch(s), html("span", {}, s.name), figure);
    return { s, button, figure };
  });
  let log = false;
  const logButton = html("button", { type: "button", class: "log", title: "Logarithmic vertical axis", onclick: () => { log = !log; draw(); } }, "log");
  const place = html("div", {});
  const card = html("section", { class: "card" },
    html("div", { class: "card-head" }, html("h2", {}, chart.title, chart.unit ? html("span", { class: "unit" }, chart.unit) : null), logButton),
    chart.note ? html("p", { class: "muted" }, chart.note) : null,
    html("ul", { class: "keys" }, keys.map((k) => html("li", {}, k.button))), place);
  host.append(card);
  let now = null, x = null;
  function draw() {
    logButton.setAttribute("aria-pressed", String(log));
    const width = Math.max(280, place.clientWidth);
    for (const k of keys) k.button.setAttribute("aria-pressed", String(!view.hidden.has(hiddenKey(chart, k.s))));
    const root = drawPlot(chart, width, log, `clip-${number}`);
    now = svg("line", { class: "now", y1: plotMargin.top, y2: plotHeight - plotMargin.bottom, visibility: "hidden" });
    root.append(now);
    x = timeScale(width);
    follow(root, x, width);
    replaceKeepingFocus(place, root);
    moveTo(view.cursor);
  }
  function moveTo(t) {
    placeNow(now, x, t);
    for (const k of keys) {
      const value = t === null ? null : valueAt(k.s, t);
      k.figure.textContent = value === null ? "" : formatNumber(value);
    }
  }
  return { draw, moveTo };
}

function placeNow(line, x, t) {
  const visible = t !== null && t >= view.from && t <= view.to;
  line.setAttribute("visibility", visible ? "visible" : "hidden");
  if (!visible) return;
  line.setAttribute("x1", x(t));
  line.setAttribute("x2", x(t));
}

// replaceKeepingFocus redraws without taking the keyboard away.
function replaceKeepingFocus(place, root) {
  const focused = place.contains(document.activeElement);
  place.replaceChildren(root);
  if (focused) root.focus({ preventScroll: true });
}
