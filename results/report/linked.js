// The charts besides the plot: what they share, and their cards.

// soon calls a function once before the next frame, however often it is asked to.
const soon = (() => {
  const waiting = new Set();
  return (callback) => {
    if (waiting.size === 0) {
      requestAnimationFrame(() => {
        const due = [...waiting];
        waiting.clear();
        for (const call of due) call();
      });
    }
    waiting.add(callback);
  };
})();

// drawnWhenSeen returns what asks for a drawing: it is made at once where its element is on the screen or nearly so, and
// otherwise when it comes there, so that charts out of sight cost nothing. On paper everything is seen.
function drawnWhenSeen(element, draw) {
  let near = false, due = false;
  const ask = () => {
    due = !near && !paper.printing;
    if (!due) draw();
  };
  new IntersectionObserver((entries) => {
    near = entries[entries.length - 1].isIntersecting;
    if (near && due) ask();
  }, { rootMargin: "200px 0px" }).observe(element);
  return ask;
}

// placeBeside puts a tooltip beside a place on the screen, inside its element.
function placeBeside(tip, element, { clientX, clientY }) {
  const box = element.getBoundingClientRect();
  const x = clientX - box.left, y = clientY - box.top;
  const left = x + 16 + tip.offsetWidth > element.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${y + 14}px`;
}

// pointTip says what a point is and what it has in some columns.
function pointTip(row, columns) {
  const figures = columns.filter((c) => c.role === "metric").map((c) => [title(c), averaged(c, row)]);
  return [html("div", { class: "state" }, stateBadge(row, frontierRows)), pairs([...axisPairs(row), null, ...figures])];
}

// columnMenu is a menu of boxes for columns, in sections: [heading, columns].
function columnMenu(label, sections, chosen, onChoose) {
  const box = (c) => html("label", {}, html("input", { type: "checkbox", checked: chosen.includes(c), value: c.name, onchange: (event) => onChoose(c, event.target.checked) }), title(c));
  return html("details", { class: "menu" }, html("summary", {}, label),
    html("div", {}, sections.filter(([, columns]) => columns.length).map(([heading, columns]) => [html("h3", {}, heading), columns.map(box)])));
}

// drawLinkedCharts fills the cards of the further charts and hides those that have nothing to show.
function drawLinkedCharts() {
  drawParallelCard();
  drawHeatCard();
  drawMultiplesCard();
  drawBreakdownCard();
  drawTimelinesCard();
}

function drawParallelCard() {
  const chart = makeParallel(byID("parallel"));
  byID("parallel-card").hidden = chart === null;
  if (chart === null) return;
  const menu = () => fill(byID("parallel-controls"), columnMenu("Axes of the chart", [
    ["Axes", parallelChoices().filter((c) => c.role === "axis")], ["Metrics", parallelChoices().filter((c) => c.role === "metric")],
    ["Point and settings", parallelChoices().filter((c) => c.role !== "axis" && c.role !== "metric")],
  ], chart.columns(), (column, on) => chart.choose(on ? [...chart.columns(), column] : chart.columns().filter((c) => c !== column))));
  const note = () => {
    const shown = candidateRows.reduce((n, row) => n + (selection.touches(row) ? 1 : 0), 0);
    byID("parallel-note").textContent = `A line is a point. Drag along an axis to choose points${selection.active() ? ` · ${plural(shown, "point")} chosen` : ""}${shown > mostLines ? ` · ${mostLines.toLocaleString("en-US")} drawn` : ""}.`;
  };
  menu();
  note();
  onChange(["selection", "colours"], note);
}

function drawHeatCard() {
  const map = makeHeatmap(byID("heatmap"));
  byID("heatmap-card").hidden = map === null;
  if (map === null) return;
  const option = (c) => [c.name, title(c) + (c.unit ? ` (${c.unit})` : ""), c.doc];
  const pick = (key) => (name) => {
    const column = columnsByName.get(name);
    if (key === "x" && column === map.view.y) map.view.y = map.view.x;
    if (key === "y" && column === map.view.x) map.view.x = map.view.y;
    map.view[key] = column;
    controls();
    map.redraw();
  };
  const axisGroups = () => [["Axes", heatAxes().filter((c) => c.role === "axis").map(option)], ["Point and settings", heatAxes().filter((c) => c.role !== "axis").map(option)]];
  const summaries = heatSummaries.filter(([key]) => key !== "feasible" || report.constraints.length > 0);
  const controls = () => fill(byID("heatmap-controls"),
    picker("Shows the", [["", summaries]], map.view.summary, (key) => { map.view.summary = key; controls(); map.redraw(); }),
    picker("of", [["Metrics", plottable.map(option)]], map.view.figure.name, pick("figure")),
    picker("Up", axisGroups(), map.view.y.name, pick("y")), picker("Across", axisGroups(), map.view.x.name, pick("x")));
  controls();
}

function drawMultiplesCard() {
  const element = byID("multiples");
  byID("multiples-card").hidden = variedAxes.length === 0 || report.objectives.every((o) => !columnsByName.has(o.name));
  const ask = drawnWhenSeen(element, () => drawMultiples(element));
  const note = () => { byID("multiples-note").textContent = multiplesNote(); };
  onChange(["selection", "bounds", "theme"], ask);
  onChange(["selection"], note);
  onResize(element, ask);
  ask();
  note();
}

function drawBreakdownCard() {
  const bars = makeBreakdown(byID("breakdown"));
  byID("breakdown-card").hidden = bars === null;
  if (bars === null) return;
  const note = () => {
    const { of } = barRows();
    byID("breakdown-note").textContent = `Means over the completed requests of the pinned point and of ${of > mostBars ? `${mostBars} of the ${of} points` : "the points"} on the frontier; on the right what limits them.`;
  };
  const controls = () => fill(byID("breakdown-controls"), bars.view.both ? ["Shares", "Times"].map((label, i) => toggle(label, bars.view.inMs === (i === 1), () => {
    bars.view.inMs = i === 1;
    bars.redraw();
    controls();
  }, i === 1 ? "Milliseconds of a request" : "Shares of the time of a request")) : null);
  controls();
  note();
  onChange(["bounds", "selection"], note);
}

function drawTimelinesCard() {
  const plots = makeTimelines(byID("timelines"));
  byID("timelines-card").hidden = plots === null;
  if (plots !== null) byID("timelines-note").textContent = `${plural(plots.points.length, "point")} with their first replicate: the frontier, then an even choice; servegrid timeline lays any others over each other.`;
}
