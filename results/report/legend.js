// The legend: which colour is which value, and a click hides a series.

const swatchPaths = {
  ring: () => ringed("circle", 7, 7, 5.5),
  target: () => targeted("circle", 7, 7, 4.3),
  faint: (shape) => outline(shape, 7, 7, 4),
  near: (shape) => outline(shape, 7, 7, 4),
  cross: () => crossed(7, 7, 4.5),
  "ringed cross": () => crossed(7, 7, 3.6) + outline("circle", 7, 7, 5.6),
};

function swatch(shape, color, look) {
  const strokes = look === "cross" || look === "ringed cross";
  const attributes = strokes ? { fill: "none", stroke: color, "stroke-width": 1.4 } : { fill: color, "fill-opacity": { faint: 0.35, near: 0.75 }[look] || 1 };
  const d = swatchPaths[look] ? swatchPaths[look](shape) : outline(shape, 7, 7, 5);
  return svg("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, svg("path", { d, ...attributes }));
}

function drawLegend(element, state, series, onToggle) {
  const parts = [html("h3", {}, state.color ? state.color.name : "Points")];
  if (series.length > 14) {
    const stops = Array.from({ length: 9 }, (_, i) => rampColor(i / 8)).join(", ");
    const values = distinct(state.color);
    parts.push(
      html("div", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }),
      html("div", { class: "ramp-ends" }, html("span", {}, formatValue(values[0])), html("span", {}, formatValue(values[values.length - 1]))),
    );
  } else if (state.color) {
    parts.push(html("ul", { class: "legend-list" }, series.map((s) => html("li", {}, html("button", {
      type: "button", "aria-pressed": String(!state.hidden.has(s.label)), title: `Show or hide ${s.label}`, onclick: () => onToggle(s.label),
    }, swatch(s.shape, s.color), html("span", {}, s.label))))));
  }
  const ink = getComputedStyle(document.body).color;
  const key = (look, text) => html("div", {}, swatch("circle", ink, look), text);
  const rows = series.flatMap((s) => s.rows);
  const timing = timingKeys(rows).map(([look, text, hint]) => (look ? key(look, text) : html("div", { class: "bad", title: hint }, text)));
  const bothMissAndAnalytic = rows.some((row) => infeasibleRows.has(row) && isAnalytic(row));
  parts.push(html("div", { class: "legend-keys" }, key("", "frontier"), key("faint", "dominated"), noiseRows.size ? key("near", "within noise of the frontier") : null,
    infeasibleRows.size ? key("cross", "misses a limit") : null, membersOf ? html("div", { title: "Of the mean over the replicates." }, "bars: 95 % intervals") : null, timing,
    bothMissAndAnalytic ? key("ringed cross", "analytic and misses a limit") : null));
  fill(element, parts);
}
