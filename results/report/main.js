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
  pinned: null,
  suggestion: null,
};

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

function show(row) {
  moveCircle(drawn.cursor, drawn, row);
  tooltip.hidden = row === null;
  if (row === null) return;
  fill(tooltip, tooltipContent(state, row, frontier));
  placeTooltip(tooltip, drawn, row);
}

function pin(row, suggestion = null) {
  [state.pinned, state.suggestion] = [row, suggestion];
  drawDetails(byID("details"), row, frontier, suggestion);
  if (drawn) moveCircle(drawn.pin, drawn, row);
  table.select(row);
}

function redraw() {
  if (!state.x) return;
  drawn = drawChart(chart, state, { show, pin });
  frontier = new Set(drawn.frontier);
  drawLegend(byID("legend"), state, drawn.series, (label) => {
    if (!state.hidden.delete(label)) state.hidden.add(label);
    redraw();
  });
  moveCircle(drawn.pin, drawn, state.pinned);
  drawDetails(byID("details"), state.pinned, frontier, state.suggestion);
  byID("plot-heading").textContent = `${frontierCounts(drawn.frontiers)} of ${plural(candidateRows.length, "point")}`;
}

const mostCounts = 4;

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
  const pick = (axis) => (name) => {
    state[axis] = columnsByName.get(name);
    usualScales(axis);
    drawControls();
    redraw();
  };
  const flip = (key) => () => { state[key] = !state[key]; drawControls(); redraw(); };
  const direction = (key, axis) => html("button", { type: "button", title: `${axis}: ${state[key] ? "more" : "less"} is better. Click to turn it round.`, onclick: flip(key) }, state[key] ? "↑ better" : "↓ better");
  const colors = [["", "nothing"], ...report.columns.filter((c) => c.role !== "metric" && distinct(c).length > 1 && (isNumeric(c) || distinct(c).length <= 60)).map((c) => [c.name, c.name, c.doc])];
  fill(byID("plot-controls"),
    picker("Y", groups, state.y.name, pick("y")), direction("moreY", "Y"), toggle("log", state.logY, flip("logY"), "Logarithmic Y axis"),
    picker("X", groups, state.x.name, pick("x")), direction("moreX", "X"), toggle("log", state.logX, flip("logX"), "Logarithmic X axis"),
    picker("Colour", [["", colors]], state.color ? state.color.name : "", (name) => {
      state.color = columnsByName.get(name) || null;
      state.hidden.clear();
      redraw();
    }),
    toggle("Lines", state.lines, flip("lines"), "Join the points that are best within each colour"));
}

function drawTiles() {
  const tile = (label, figure, unit, note, row) => html(row === undefined ? "div" : "button", { class: "tile", type: row === undefined ? null : "button", onclick: () => row !== undefined && pin(row) },
    html("span", { class: "label" }, label), html("span", { class: "figure" }, figure, unit ? html("small", {}, unit) : null), html("span", { class: "note" }, note || "\u00a0"));
  const ok = candidateRows.filter((row) => replicatesOf(row).some((r) => statusOf(r) === "ok")).length;
  const best = candidateRows.filter((row) => frontierRows.has(row));
  const rule = report.constraints.map((c) => c.text).join(" · ") || "no other point is better in every way";
  const split = traffic.length ? ` · for each ${report.by.join(" and ")}` : "";
  const tiles = [tile("On the frontier", String(best.length), `of ${plural(ok, "point")}`, rule + split)];
  for (const { row, misses } of report.closest.slice(0, mostCounts)) {
    tiles.push(tile(`Closest to the bounds${traffic.length ? ` of ${trafficOf(row)}` : ""}`, misses, "", configuration(row), row));
  }
  for (const objective of report.objectives.slice(0, 4)) {
    const column = columnsByName.get(objective.name);
    if (!column || best.length === 0) continue;
    const sign = objective.maximize ? 1 : -1;
    const values = means(column);
    const top = best.reduce((a, b) => (sign * values[b] > sign * values[a] ? b : a));
    tiles.push(tile(`${objective.maximize ? "Highest" : "Lowest"} ${title(column).replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`, formatValue(values[top]), unitFor(column, values[top]), configuration(top), top));
  }
  fill(byID("tiles"), tiles);
}

function drawSummary() {
  const counts = new Map();
  for (let row = 0; row < report.rows; row++) counts.set(statusOf(row), (counts.get(statusOf(row)) || 0) + 1);
  const parts = [plural(candidateRows.length, "point"), ...[...counts].filter(([s]) => s !== "ok").map(([s, n]) => `${n} ${s}`)];
  if (report.candidates) parts.splice(1, 0, `${report.rows.toLocaleString("en-US")} rows with replicates`);
  if (variedAxes.length) parts.push(`${variedAxes.length} ${variedAxes.length === 1 ? "axis" : "axes"}: ${variedAxes.map((a) => a.name).join(", ")}`);
  const workloads = Object.keys(report.workloads || {});
  if (workloads.length) parts.push(`workload${workloads.length === 1 ? "" : "s"} ${workloads.join(", ")}`);
  byID("summary").textContent = parts.join(" · ");
}

// drawCautions lists what to know before trusting the frontier.
function drawCautions() {
  byID("cautions").hidden = report.cautions.length === 0;
  fill(byID("cautions"), report.cautions.map((text) => html("li", {}, `⚠ ${text}`)));
}

function drawTableControls() {
  const count = html("span", { class: "muted", role: "status" });
  const say = (n) => { count.textContent = n === report.rows ? plural(n, "row") : `${n.toLocaleString("en-US")} of ${plural(report.rows, "row")}`; };
  const search = html("input", { type: "search", id: "filter", placeholder: "Filter: words, or workers>=4", "aria-label": "Filter the points", oninput: () => say(table.filter(search.value)) });
  const box = (c) => html("label", {}, html("input", { type: "checkbox", checked: table.chosen.has(c.name), onchange: (event) => {
    if (event.target.checked) table.chosen.add(c.name);
    else table.chosen.delete(c.name);
    table.redraw();
  } }), title(c));
  const section = (heading, columns) => (columns.length ? [html("h3", {}, heading), columns.map(box)] : []);
  const of = (...roles) => table.columns.filter((c) => roles.includes(c.role));
  fill(byID("table-controls"), count, search, html("details", { class: "menu" }, html("summary", {}, "Columns"),
    html("div", {}, section("Axes", of("axis")), section("Metrics", of("metric")), section("Point and settings", of("derived", "point", "config")))));
  say(report.rows);
  return (text) => { search.value = text; say(table.filter(text)); };
}

// drawCliffs says from which value of an axis on the bounds are missed.
function drawCliffs() {
  byID("cliffs-card").hidden = report.cliffs.length === 0;
  const rest = (cliff) => [[cliff.more, "more that lose it"], [cliff.kept, "that keep it at all values"], [cliff.lost, "that never keep it"]]
    .filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`).join(" · ");
  fill(byID("cliffs"), report.cliffs.map((cliff) => html("div", { class: "failure" },
    html("div", {}, html("div", { class: "reason" }, cliff.axis), html("div", { class: "muted" }, rest(cliff))),
    html("ul", {}, cliff.lines.map((line) => html("li", {}, line.of ? html("span", { class: "muted" }, `${line.of}: `) : null, line.text))))));
}

function drawFailures(setFilter) {
  const reasons = columnsByName.get("reason"), errors = columnsByName.get("error");
  const groups = new Map();
  for (let row = 0; row < report.rows; row++) {
    if (statusOf(row) === "ok") continue;
    const reason = (reasons && reasons.values[row]) || "unknown";
    const error = (errors && errors.values[row]) || "";
    const key = JSON.stringify([statusOf(row), reason, error]);
    if (!groups.has(key)) groups.set(key, { status: statusOf(row), reason, error, rows: [] });
    groups.get(key).rows.push(row);
  }
  byID("failures-card").hidden = groups.size === 0;
  const most = 6;
  const line = (row) => html("li", {}, configuration(row) || `point ${row + 1}`);
  fill(byID("failures"), [...groups.values()].map((g) => html("div", { class: "failure" },
    html("div", {}, html("div", { class: "reason" }, g.reason), html("div", { class: "muted" }, `${g.rows.length} ${g.status}`)),
    html("div", {}, html("p", {}, g.error), html("ul", { class: "muted" }, g.rows.slice(0, most).map(line)),
      g.rows.length > most ? html("button", { type: "button", onclick: () => {
        setFilter(`status=${g.status} ${g.reason.includes(" ") || g.reason === "unknown" ? "" : `reason=${g.reason}`}`.trim());
        byID("table-heading").scrollIntoView();
      } }, `Show all ${g.rows.length} in the table`) : null))));
}

function drawSpec() {
  const facts = (heading, entries) => (entries.length ? [html("h3", {}, heading), html("dl", { class: "facts" }, entries.map(([k, v]) => [html("dt", {}, k), html("dd", {}, v === "" ? "–" : v)]))] : []);
  const sides = [facts("Equal at all points", report.constants.map((c) => [c.name, c.value])), facts("Workload digests", Object.entries(report.workloads || {})), facts("Versions", Object.entries(report.versions || {}))];
  byID("spec-card").hidden = !report.spec && sides.every((s) => s.length === 0);
  fill(byID("spec"), report.spec ? html("div", {}, html("pre", { tabindex: 0 }, report.spec), html("p", {}, copyButton(report.spec))) : null, html("div", {}, sides.flat()));
}

// drawFooter says where the figures come from.
function drawFooter() {
  const column = columnsByName.get("timing_source");
  const timing = column ? distinct(column) : [constants.get("timing_source") || constants.get("timing.source")].filter((s) => s);
  const version = (report.versions || {}).simulator || constants.get("simulator_version");
  const parts = [];
  if (timing.length) parts.push(`${timing.join(" and ")} timing${timing.includes("polynomial") ? ": see docs/timing.md" : ""}`);
  if (version) parts.push(`simulator version ${version}`);
  byID("footer").textContent = parts.join(" · ");
}

const table = makeTable(byID("table"), pin);
drawSummary();
drawCautions();
drawTiles();
drawFailures(drawTableControls());
drawCliffs();
drawSpec();
drawFooter();
byID("multiples-note").textContent = `Every point; the line joins the medians${report.constraints.length ? " of those that keep the bounds" : ""}.`;
byID("multiples-card").hidden = !drawMultiples(byID("multiples"));
onResize(byID("multiples"), () => drawMultiples(byID("multiples")));

if (state.x) {
  usualScales("x");
  usualScales("y");
  chart.append(tooltip);
  drawControls();
  redraw();
  suggest();
  onResize(chart, redraw);
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    show(nearest(drawn, event.clientX - box.left, event.clientY - box.top));
  });
  chart.addEventListener("pointerleave", () => show(null));
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    const row = nearest(drawn, event.clientX - box.left, event.clientY - box.top);
    if (row !== null) pin(row);
  });
  darkScheme.addEventListener("change", redraw);
}
for (const [when, printing] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(when, () => {
    paper.printing = printing;
    redraw();
    table.redraw();
  });
}

// suggest shows the knee of the first frontier that has points, or what comes closest to the bounds.
function suggest() {
  const first = drawn.frontiers.find((f) => f.rows.length > 0);
  if (first) {
    pin(knee(first.rows), {
      name: `knee of the frontier${traffic.length ? ` of ${first.label}` : ""}`,
      rule: `Of the frontier's points, the one farthest from the straight line between its ends in the plot: it gives up least of ${title(state.x)} and ${title(state.y)} together.`,
    });
  } else if (report.closest.length > 0) {
    pin(report.closest[0].row, { name: "closest to the bounds", rule: "No point keeps the bounds. This one misses them by the smallest share." });
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
