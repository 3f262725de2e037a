// The legend: which colour is which value, and a click hides a series.

function swatch(shape, color, look) {
  const attributes = look === "hollow" ? { fill: "none", stroke: color, "stroke-width": 1.4 } : { fill: color, "fill-opacity": look === "faint" ? 0.35 : 1 };
  return svg("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, svg("path", { d: look === "ring" ? ringed(shape, 7, 7, 5.5) : outline(shape, 7, 7, look ? 4 : 5), ...attributes }));
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
  const timing = timingKeys(series.flatMap((s) => s.rows)).map(([look, text, hint]) => (look ? key(look, text) : html("div", { class: "bad", title: hint }, text)));
  parts.push(html("div", { class: "legend-keys" }, key("", "frontier"), key("faint", "dominated"), report.constraints.length ? key("hollow", "misses the SLA") : null, timing));
  fill(element, parts);
}
