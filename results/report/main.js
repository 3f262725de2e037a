// Puts the page together.

const usualPair = report.objectives.map((o) => columnsByName.get(o.name)).filter((c) => c);
const candidates = plottable.length > 1 ? plottable : numericColumns;
const usualY = usualPair[0] || candidates[0];
const state = {
  y: usualY,
  x: usualPair[1] || candidates.find((c) => c !== usualY) || usualY,
  color: usualColor(),
  lines: true,
  hidden: new Set(),
  suggestion: null,
};
const colours = coloursFor(state);

// usualColor prefers the traffic, then an axis of few words, then one of few numbers.
function usualColor() {
  if (traffic.length === 1) return traffic[0];
  const few = variedAxes.filter((c) => distinct(c).length <= 8);
  return few.find((c) => c.kind !== "number") || few[0] || null;
}

function usualScales(axis) {
  const values = state[axis].values.filter((v) => v !== null);
  if (axis === "x") [state.logX, state.moreX] = [spansDecades(values), maximizes(state.x)];
  else [state.logY, state.moreY] = [spansDecades(values), maximizes(state.y)];
}

let drawn = null;
let frontier = new Set();
const chart = byID("chart");
const tooltip = html("div", { class: "tooltip", role: "status", hidden: true });
const brush = makeBrush(chart, () => drawn, ([x, y]) => {
  const row = nearest(drawn, x, y);
  if (row !== null) pin(row);
  else brush.clear();
});

// hover marks a point in the plot, and show also says what it is.
function hover(row) {
  if (!drawn) return;
  moveCircle(drawn.cursor, drawn, row);
  fill(drawn.bars, drawn.errorBars(row !== null && drawn.shown.has(standsFor(row)) ? standsFor(row) : null));
}

function show(row) {
  hover(row);
  tooltip.hidden = row === null;
  if (row === null) return;
  fill(tooltip, tooltipContent(state, row, frontier));
  placeTooltip(tooltip, drawn, row);
}

function pin(row, suggestion = null) {
  state.suggestion = suggestion;
  setPinned(row);
}

// showPinned follows the pinned point, wherever it was pinned.
function showPinned() {
  drawDetails(byID("details"), pinned(), frontier, state.suggestion);
  if (drawn) moveCircle(drawn.pin, drawn, pinned());
  table.select(pinned());
  saveView();
}

function redraw() {
  if (!state.x) return;
  drawn = drawChart(chart, state, { show, pin });
  tooltip.hidden = true;
  frontier = new Set(drawn.frontier);
  drawLegend(byID("legend"), state, drawn.series, (label) => {
    if (!state.hidden.delete(label)) state.hidden.add(label);
    tell("colours");
  });
  brush.draw();
  moveCircle(drawn.pin, drawn, pinned());
  byID("plot-heading").textContent = `${frontierCounts(drawn.frontiers)} of ${plural(candidateRows.length, "point")}`;
}

// frontierCounts says how many points are on each frontier.
function frontierCounts(frontiers) {
  const total = frontiers.reduce((sum, f) => sum + f.rows.length, 0);
  if (traffic.length === 0) return `Frontier · ${total}`;
  if (frontiers.length > mostCounts) return `${frontiers.length} frontiers by ${report.by.join(", ")} · ${total}`;
  return `Frontiers · ${frontiers.map((f) => `${f.label} ${f.rows.length}`).join(" · ")}`;
}

function drawControls() {
  const option = (c) => [c.name, title(c) + (c.unit ? ` (${c.unit})` : ""), c.doc];
  const rest = numericColumns.filter((c) => !usualPair.includes(c));
  const groups = [
    ["Objectives", usualPair.map(option)], ["Metrics", rest.filter((c) => c.role === "metric").map(option)],
    ["Axes and settings", rest.filter((c) => c.role !== "metric").map(option)],
  ];
  const changed = () => {
    brush.clear();
    drawControls();
    tell("axes");
  };
  const pick = (axis) => (name) => {
    state[axis] = columnsByName.get(name);
    usualScales(axis);
    changed();
  };
  const flip = (key) => () => { state[key] = !state[key]; changed(); };
  const direction = (key, axis) => html("button", { type: "button", title: `${axis}: ${state[key] ? "more" : "less"} is better. Click to turn it round.`, onclick: flip(key) }, state[key] ? "↑ better" : "↓ better");
  const few = (c) => isNumeric(c) || distinct(c).length <= 60;
  const colors = [["", "nothing"], ...report.columns.filter((c) => c.role !== "metric" && distinct(c).length > 1 && few(c)).map((c) => [c.name, c.name, c.doc])];
  fill(byID("plot-controls"),
    picker("Y", groups, state.y.name, pick("y")), direction("moreY", "Y"), toggle("log", state.logY, flip("logY"), "Logarithmic Y axis"),
    picker("X", groups, state.x.name, pick("x")), direction("moreX", "X"), toggle("log", state.logX, flip("logX"), "Logarithmic X axis"),
    picker("Colour", [["", colors]], state.color ? state.color.name : "", (name) => {
      state.color = columnsByName.get(name) || null;
      state.hidden.clear();
      tell("colours");
    }),
    toggle("Lines", state.lines, flip("lines"), "Join the points that are best within each colour"));
}

const search = html("input", { type: "search", id: "filter", placeholder: "Filter: words, or workers>=4", "aria-label": "Filter the points", oninput: () => setFilter(search.value) });

function setFilter(text) {
  if (search.value !== text) search.value = text;
  selection.set(text.trim() ? filterRows(text) : null, "filter");
}

function drawTableControls() {
  const count = html("span", { class: "muted", role: "status" });
  const clear = html("button", { type: "button", title: "Escape does the same", onclick: () => selection.clear() }, "Show all");
  const say = () => {
    count.textContent = selection.active() ? `${selection.size().toLocaleString("en-US")} of ${plural(report.rows, "row")}` : plural(report.rows, "row");
    clear.hidden = !selection.active();
  };
  const box = (c) => html("label", {}, html("input", { type: "checkbox", checked: table.chosen.has(c.name), onchange: (event) => {
    if (event.target.checked) table.chosen.add(c.name);
    else table.chosen.delete(c.name);
    table.redraw();
  } }), title(c));
  const section = (heading, columns) => (columns.length ? [html("h3", {}, heading), columns.map(box)] : []);
  const of = (...roles) => table.columns.filter((c) => roles.includes(c.role));
  fill(byID("table-controls"), count, clear, search, html("details", { class: "menu" }, html("summary", {}, "Columns"),
    html("div", {}, section("Axes", of("axis")), section("Metrics", of("metric")), section("Point and settings", of("derived", "point", "config")))));
  onChange(["selection"], say);
  say();
}

// followSelection drops what a source shows of its part when that was cleared.
function followSelection() {
  if (brush.get() && !selection.of("plot")) brush.clear();
  if (search.value.trim() && !selection.of("filter")) search.value = "";
}

addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.menu[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  } else selection.clear();
});

// plotObjectives are the two figures of the plot as objectives.
const plotObjectives = () => (state.x ? [{ name: state.y.name, maximize: state.moreY }, { name: state.x.name, maximize: state.moreX }] : []);

// viewObjectives are the report's own as long as the plot shows two of them.
function viewObjectives() {
  const pair = plotObjectives();
  const own = pair.every((p) => report.objectives.some((o) => o.name === p.name && o.maximize === p.maximize));
  return own ? report.objectives : pair;
}

// viewWords are the view in words for the address; what is as usual is left out.
function viewWords() {
  const unless = (usual, value) => (value === usual ? null : value);
  const flag = (value) => (value ? 1 : 0);
  const usual = startState;
  const round = (v) => Number(v.toPrecision(5));
  return {
    x: unless(usual.x, state.x)?.name, y: unless(usual.y, state.y)?.name, color: state.color === usual.color ? null : state.color ? state.color.name : "",
    log: unless(`${flag(usual.logX)}${flag(usual.logY)}`, `${flag(state.logX)}${flag(state.logY)}`),
    more: unless(`${flag(usual.moreX)}${flag(usual.moreY)}`, `${flag(state.moreX)}${flag(state.moreY)}`),
    lines: unless(true, state.lines) === null ? null : 0,
    hide: state.hidden.size ? JSON.stringify([...state.hidden]) : null,
    where: boundsMoved() ? activeBounds().map(boundText).join(" && ") : null,
    filter: search.value.trim() || null,
    area: brush.get() ? brush.get().map(round).join(",") : null,
    point: pinned() === null || state.suggestion ? null : pinned(),
    theme: chosenTheme() || null,
  };
}

let saving = 0;
function saveView() {
  clearTimeout(saving);
  saving = setTimeout(() => writeLink(viewWords()), 150);
}

// restoreView takes the view from the address, as far as it makes sense here.
function restoreView(words) {
  const numeric = (name) => (columnsByName.has(name) && isNumeric(columnsByName.get(name)) ? columnsByName.get(name) : null);
  for (const axis of ["x", "y"]) {
    state[axis] = numeric(words[axis]) || startState[axis];
    usualScales(axis);
  }
  const bit = (text, i, usual) => (/^[01]{2}$/.test(text || "") ? text[i] === "1" : usual);
  [state.logX, state.logY] = [bit(words.log, 0, state.logX), bit(words.log, 1, state.logY)];
  [state.moreX, state.moreY] = [bit(words.more, 0, state.moreX), bit(words.more, 1, state.moreY)];
  state.color = words.color === undefined ? startState.color : columnsByName.get(words.color) || null;
  state.lines = words.lines !== "0";
  state.hidden.clear();
  for (const label of listOf(words.hide)) state.hidden.add(label);
  if (words.where !== undefined) setBounds(words.where);
  else for (const b of bounds) [b.column, b.bound] = [b.usual.column, b.usual.bound];
  chooseTheme(["light", "dark"].includes(words.theme) ? words.theme : "");
}

function listOf(text) {
  try {
    const list = JSON.parse(text || "[]");
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

// restoreSelection takes what needs the drawn plot: filter, rectangle and point.
function restoreSelection(words) {
  setFilter(words.filter || "");
  const area = (words.area || "").split(",").map(Number);
  brush.set(area.length === 4 && area.every(Number.isFinite) ? area : null);
  const row = Number(words.point);
  if (words.point !== undefined && Number.isInteger(row) && row >= 0 && row < report.rows) pin(row);
  else suggest();
}

// suggest shows the knee of the first frontier that has points, or what comes closest to the bounds.
function suggest() {
  const first = drawn.frontiers.find((f) => f.rows.length > 0);
  const closest = first ? [] : closestToBounds();
  if (first) {
    pin(knee(first.rows), {
      name: `knee of the frontier${traffic.length ? ` of ${first.label}` : ""}`,
      rule: `Of the frontier's points, the one farthest from the straight line between its ends in the plot: it gives up least of ${title(state.x)} and ${title(state.y)} together.`,
    });
  } else if (closest.length > 0) {
    pin(closest[0].row, { name: "closest to the bounds", rule: "No point keeps the bounds. This one misses them by the smallest share." });
  } else pin(null);
}

// knee is the point that gives up least of both figures together: the usual compromise.
function knee(frontier) {
  const share = (axis) => {
    const of = (row) => drawn.place(row)[axis];
    const from = of(frontier[0]), to = of(frontier[frontier.length - 1]);
    return (row) => (from === to ? 0 : (of(row) - from) / (to - from));
  };
  // Along the frontier x gets worse and y better, so their shares of the way are its losses and gains.
  const x = share(0), y = share(1);
  return frontier.reduce((best, row) => (y(row) - x(row) > y(best) - x(best) ? row : best));
}

function followPointer() {
  const at = (event) => {
    const box = chart.getBoundingClientRect();
    return nearest(drawn, event.clientX - box.left, event.clientY - box.top);
  };
  chart.addEventListener("pointermove", (event) => show(brush.dragging() ? null : at(event)));
  chart.addEventListener("pointerleave", () => show(null));
}

applyNoise();
const table = makeTable(byID("table"), { pick: pin, hover });
drawSummary();
drawCautions();
drawTableControls();
drawFailures(setFilter);
drawCliffs();
drawSpec();
drawFooter();
if (state.x) {
  usualScales("x");
  usualScales("y");
}
const startState = { ...state };
if (state.x) {
  restoreView(readLink());
  if (boundsMoved()) applyBounds();
  chart.append(tooltip);
  drawControls();
  redraw();
  followPointer();
  restoreSelection(readLink());
  onResize(chart, redraw);
  onChange(["bounds", "selection", "colours", "theme", "axes"], redraw);
  onChange(["bounds", "axes"], () => {
    if (state.suggestion) suggest();
    else tell("pin"); // its badge may be another one
  });
}
const limits = makeLimits(byID("limits"), viewObjectives);
drawTiles(pin);
showPinned();
later(drawLinkedCharts);
onChange(["selection"], followSelection);
onChange(["selection"], () => table.refresh());
onChange(["bounds"], () => { table.rerank(); drawTiles(pin); });
onChange(["pin"], showPinned);
onChange(["bounds", "selection", "colours", "theme", "axes"], saveView);
document.addEventListener("themechange", () => {
  tell("theme");
  if (paper.printing) flush();
});
for (const when of ["beforeprint", "afterprint"]) addEventListener(when, () => table.redraw());
addEventListener("hashchange", () => {
  const words = readLink();
  restoreView(words);
  applyBounds();
  limits?.show();
  drawControls();
  redraw();
  restoreSelection(words);
});
