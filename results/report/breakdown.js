// Where the time of a request goes: bars for the pinned point and for those of the frontier.

const timeParts = [
  ["queue", "waits to be admitted"], ["prefill", "its prompt is computed"], ["transfer", "its KV blocks move"], ["decode", "its output is made"], ["stall", "waits again, for KV blocks or at a decode worker"],
];
const mostBars = 20;

const partColumns = (part) => ({ share: columnsByName.get(`${part}_time_share`), mean: columnsByName.get(`mean_${part}_time_ms`) });
// partsWithFigures are those that any point spends time in.
const partsWithFigures = () => timeParts.map(([name, meaning]) => ({ name, meaning, ...partColumns(name) })).filter((p) => p.share || p.mean);

// partColor is the colour of a part, by its place in the palette of words.
const partColor = (name) => wordColors[isDark() ? "dark" : "light"][{ queue: 1, prefill: 0, transfer: 3, decode: 2, stall: 4 }[name]];

// barRows are the pinned point and the chosen ones on the frontier, evenly thinned to what fits.
function barRows() {
  const figures = means(partsWithFigures()[0].share || partsWithFigures()[0].mean);
  const known = (row) => row !== null && figures[row] !== null;
  const frontier = candidateRows.filter((row) => frontierRows.has(row) && selection.touches(row) && known(row));
  const lead = report.objectives.map((o) => columnsByName.get(o.name)).find((c) => c);
  if (lead) frontier.sort((a, b) => (maximizes(lead) ? -1 : 1) * (means(lead)[a] - means(lead)[b]) || a - b);
  const few = frontier.length <= mostBars ? frontier : Array.from({ length: mostBars }, (_, i) => frontier[Math.floor((i * frontier.length) / mostBars)]);
  const first = standsFor(pinned());
  return { rows: known(first) ? [first, ...few.filter((row) => row !== first)] : few, of: frontier.length };
}

// timesOf are the lengths of a row's parts, as shares of the whole or in milliseconds.
function timesOf(row, inMs) {
  return partsWithFigures().map((p) => {
    const column = (inMs ? p.mean : p.share) || p.share || p.mean;
    return { name: p.name, meaning: p.meaning, length: means(column)[row] || 0 };
  });
}

// makeBreakdown puts the bars into their element and returns { view, redraw }, or null for files without the columns.
function makeBreakdown(element) {
  const parts = partsWithFigures();
  if (parts.length < 2) return null;
  const view = { inMs: !parts.some((p) => p.share), both: parts.some((p) => p.share) && parts.some((p) => p.mean) };
  function redraw() {
    const { rows } = barRows();
    view.least = element.clientWidth < 620 ? 0.18 : 0.075; // of the bar, so that its figure fits
    const times = rows.map((row) => timesOf(row, view.inMs));
    const totals = times.map((parts) => parts.reduce((sum, p) => sum + p.length, 0));
    const longest = Math.max(...totals, 1e-9);
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.row : undefined;
    fill(element, partsKey(times), html("ul", { class: "bars" }, rows.map((row, i) => barOf(row, times[i], totals[i], view.inMs ? longest : totals[i] || 1, view))),
      rows.length === 0 ? html("p", { class: "muted" }, "No chosen point is on the frontier.") : null);
    if (focused !== undefined) element.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }
  const ask = drawnWhenSeen(element, redraw);
  onChange(["bounds", "selection", "pin", "theme"], ask);
  ask();
  return { view, redraw };
}

// partsKey names the parts that are seen.
function partsKey(times) {
  const seen = timeParts.filter(([name]) => times.some((parts) => parts.some((p) => p.name === name && p.length > 0)));
  return html("ul", { class: "parts-key" }, seen.map(([name, meaning]) => html("li", { title: meaning }, html("i", { style: `background:${partColor(name)}` }), `${name}: ${meaning}`)));
}

const partText = (part, total, inMs) => `${part.name} ${inMs ? `${formatNumber(part.length)} ms` : wholePercent(total > 0 ? part.length / total : 0)}`;

// barOf is a point's bar; a click pins the point.
function barOf(row, parts, total, full, view) {
  const limit = columnsByName.get("limiting_resource") ? columnsByName.get("limiting_resource").values[row] : null;
  const words = parts.filter((p) => p.length > 0).map((p) => partText(p, total, view.inMs));
  const isPinned = row === standsFor(pinned());
  return html("li", {}, html("button", {
    type: "button", class: isPinned ? "bar-row pinned" : "bar-row", "data-row": row, "aria-pressed": String(isPinned), onclick: () => pin(row),
    "aria-label": `${configuration(row)}: ${words.join(", ")}${limit ? `; limited by ${limitText(limit)}` : ""}`, title: words.join(" · "),
  }, html("span", { class: "bar-name" }, configuration(row) || `point ${row + 1}`, isPinned && !frontierRows.has(row) ? html("small", {}, "not on the frontier") : null),
  html("span", { class: "bar" }, parts.map((p) => html("span", { style: `width:${((100 * p.length) / full).toFixed(2)}%;background:${partColor(p.name)};color:${isBright(partColor(p.name)) ? "#000" : "#fff"}` }, p.length / full > view.least ? partText(p, total, view.inMs).replace(`${p.name} `, "") : null))),
  html("span", { class: "bar-limit" }, limit ? limitText(limit) : "")));
}

// limitText says what holds a point back.
const limitText = (limit) => ({ none: "load", compute: "compute", batch_slots: "batch slots", kv_memory: "KV memory" }[limit] || String(limit).replaceAll("_", " "));
