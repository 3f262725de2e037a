// The limits: a slider and a number for each figure that people bound. Behind a slider stands how many points there are
// where.

const slots = 1000; // positions of a slider over a scale; few values have one each
const fewValues = 40;
const bars = 48;

// makeTrack maps the values of a column to the positions of a slider: { most, toPosition, toValue, counts }. The last
// position of an upper bound, and the first of a lower one, are no bound.
function makeTrack(column) {
  const values = candidateRows.map((row) => means(column)[row]).filter((v) => v !== null);
  const levels = [...new Set(values)].sort((a, b) => a - b);
  if (levels.length <= fewValues) {
    const near = (v) => levels.reduce((best, level, i) => (Math.abs(level - v) < Math.abs(levels[best] - v) ? i : best), 0);
    return { most: levels.length + 1, toPosition: (v) => near(v) + 1, toValue: (p) => levels[Math.min(levels.length - 1, Math.max(0, p - 1))], counts: levels.map((level) => values.filter((v) => v === level).length) };
  }
  const low = levels[0], high = levels[levels.length - 1];
  const log = low > 0 && high / low > 8;
  const [a, b] = log ? [Math.log(low), Math.log(high)] : [low, high];
  const share = (v) => ((log ? Math.log(Math.max(v, low)) : v) - a) / (b - a);
  const counts = new Array(bars).fill(0);
  for (const v of values) counts[Math.min(bars - 1, Math.floor(share(v) * bars))]++;
  return {
    most: slots,
    toPosition: (v) => Math.min(slots - 1, Math.max(1, Math.round(share(v) * slots))),
    toValue: (p) => roundBound(log ? Math.exp(a + (p / slots) * (b - a)) : a + (p / slots) * (b - a)),
    counts,
  };
}

const roundBound = (v) => Number(v.toPrecision(3));

// drawHistogram shows where the points are; the part on the side of the bound that keeps it is in colour.
function drawHistogram(counts) {
  const width = 200, height = 26;
  const most = Math.max(...counts), step = width / counts.length;
  const d = counts.map((n, i) => {
    const tall = n === 0 ? 0 : Math.max(1.5, Math.sqrt(n / most) * height);
    return `M${(i * step).toFixed(2)} ${height}v${-tall.toFixed(2)}h${(step * 0.86).toFixed(2)}V${height}z`;
  }).join("");
  const kept = svg("path", { class: "kept", d });
  const root = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d }), kept);
  return { root, show: (from, to) => { kept.style.clipPath = `inset(0 ${100 * (1 - to)}% 0 ${100 * from}%)`; } };
}

// makeLimit builds the controls of one bound: { element, show }.
function makeLimit(bound, onMove) {
  let track = null, histogram = null;
  const upper = isUpper(bound.operator);
  const none = () => (upper ? track.most : 0);
  const box = html("input", { type: "number", class: "limit-number", step: "any", placeholder: "none", "aria-label": `${bound.name}, ${upper ? "at most" : "at least"}`, oninput: () => {
    const typed = box.value.trim() === "" ? null : Number(box.value);
    if (typed !== null && !Number.isFinite(typed)) return;
    bound.bound = typed;
    showSlider();
    onMove();
  } });
  const slider = html("input", { type: "range", min: 0, step: 1, "aria-label": `${bound.name}, ${upper ? "at most" : "at least"}`, oninput: () => {
    const position = Number(slider.value);
    bound.bound = position === none() ? null : track.toValue(position);
    showBox();
    showSlider(position);
    onMove();
  } });
  const unit = html("span", { class: "muted unit" });
  const back = html("div", { class: "limit-back" });
  const statistic = bound.columns.length > 1
    ? html("select", { "aria-label": `Figure of ${bound.name}`, onchange: () => { bound.column = columnsByName.get(statistic.value); takeColumn(); show(); onMove(); } }, bound.columns.map((c) => html("option", { value: c.name }, title(c))))
    : html("span", { class: "muted figure-name" }, title(bound.column));
  const takeColumn = () => {
    track = makeTrack(bound.column);
    histogram = drawHistogram(track.counts);
    slider.max = track.most;
    fill(back, histogram.root);
  };
  const showBox = () => { box.value = bound.bound === null ? "" : String(bound.bound); };
  const showSlider = (position = bound.bound === null ? none() : track.toPosition(bound.bound)) => {
    slider.value = position;
    slider.setAttribute("aria-valuetext", bound.bound === null ? "no limit" : `${upper ? "at most" : "at least"} ${formatNumber(bound.bound)} ${bound.column.unit}`.trim());
    element.classList.toggle("unbound", bound.bound === null);
    const share = track.most === slots ? position / slots : (position - (upper ? 0 : 1)) / (track.most - 1);
    histogram.show(upper ? 0 : Math.max(0, share), upper ? Math.min(1, share) : 1);
  };
  const show = () => {
    if (bound.columns.length > 1) statistic.value = bound.column.name;
    unit.textContent = bound.column.unit;
    unit.title = bound.column.unit;
    showBox();
    showSlider();
  };
  const element = html("div", { class: "limit", role: "group", "aria-label": bound.name },
    html("div", { class: "limit-head" }, html("h3", {}, bound.name), html("div", { class: "limit-value" }, html("span", { class: "muted", "aria-hidden": "true" }, upper ? "≤" : "≥"), box, unit)),
    html("div", { class: "limit-track" }, back, slider), statistic);
  takeColumn();
  show();
  return { element, show: () => { takeColumn(); show(); } };
}

// makeLimits fills the card; it returns { show } to follow bounds that something else moved, or null when there is nothing
// to bound. objectives are those of the plot, for the command line.
function makeLimits(element, objectives) {
  byID("limits-card").hidden = bounds.length === 0;
  if (bounds.length === 0) return null;
  let frame = 0;
  const move = () => {
    if (frame) return;
    frame = requestAnimationFrame(() => { frame = 0; applyBounds(); });
  };
  const limits = bounds.map((bound) => makeLimit(bound, move));
  const reset = html("button", { type: "button", onclick: () => {
    for (const bound of bounds) [bound.column, bound.bound] = [bound.usual.column, bound.usual.bound];
    show();
    applyBounds();
  } }, "Reset");
  const count = html("span", { role: "status", class: "muted" });
  const command = html("code", { class: "mono" });
  const showCounts = () => {
    const kept = candidateRows.filter((row) => !infeasibleRows.has(row)).length;
    const best = candidateRows.filter((row) => frontierRows.has(row)).length;
    count.textContent = activeBounds().length || report.constraints.length ? `${kept.toLocaleString("en-US")} of ${plural(candidateRows.length, "point")} within the limits · ${best} on the frontier` : "No limits: all points count.";
    reset.disabled = !boundsMoved();
    command.textContent = paretoCommand(objectives());
  };
  const show = () => { for (const limit of limits) limit.show(); };
  fill(byID("limits-controls"), count, reset);
  fill(element, html("div", { class: "limits" }, limits.map((limit) => limit.element)),
    html("div", { class: "limits-command" }, html("span", { class: "muted" }, "The same in a terminal"), command, copyButton(() => command.textContent)));
  onChange(["bounds", "axes"], showCounts);
  showCounts();
  return { show };
}
