// The axes of the parallel coordinates: where a value lies on its axis, from 0 at the bottom to 1 at the top, what is
// written beside it, and the brush that chooses a stretch of it.

const mostSpacedValues = 16;

// parallelAxis places a column's values. Words, yes and no, and the few values of a setting stand at even distances.
function parallelAxis(column) {
  const values = distinct(column);
  const even = column.kind !== "number" || (column.role !== "metric" && values.length <= mostSpacedValues);
  return even ? spacedAxis(column, values) : measuredAxis(column);
}

function spacedAxis(column, values) {
  const last = Math.max(1, values.length - 1);
  const places = new Map(values.map((v, i) => [v, values.length > 1 ? i / last : 0.5]));
  const every = Math.ceil(values.length / mostSpacedValues);
  const shares = Float32Array.from(candidateRows, (row) => places.get(column.values[row]) ?? NaN);
  return {
    column, shares, step: 1 / last,
    ticks: values.filter((_, i) => i % every === 0).map((v) => [places.get(v), formatAxisValue(v)]),
    text: (share) => formatValue(values[Math.round(share * last)] ?? null),
  };
}

function measuredAxis(column) {
  const figures = means(column), values = candidateRows.map((row) => figures[row]).filter((v) => v !== null);
  const log = spansDecades(values);
  const forward = log ? Math.log10 : (v) => v, back = log ? (v) => 10 ** v : (v) => v;
  let a = Infinity, b = -Infinity;
  for (const v of values) [a, b] = [Math.min(a, forward(v)), Math.max(b, forward(v))];
  if (!(a <= b)) [a, b] = [0, 1];
  if (a === b) [a, b] = [a - 0.5, b + 0.5];
  const share = (v) => (forward(v) - a) / (b - a);
  const ticks = log ? logTicks(a, b) : linearTicks(a, b, 5, values.every(Number.isInteger));
  return {
    column, step: 0.02,
    shares: Float32Array.from(candidateRows, (row) => (figures[row] === null ? NaN : share(figures[row]))),
    ticks: ticks.map((v) => [share(v), formatTick(v)]),
    text: (at) => formatNumber(Number(back(a + at * (b - a)).toPrecision(4))),
  };
}

// inRange allows for rounding at the ends.
const inRange = (share, [low, high]) => share >= low - 1e-6 && share <= high + 1e-6;

const brushGrip = 7;

// drawParallelAxis draws an axis with its brush; y maps shares to pixels. on.brush is told every new range, null for none.
function drawParallelAxis(axis, range, place, on) {
  const { x, y } = place;
  const g = svg("g", { class: "parallel-axis", transform: `translate(${x.toFixed(1)} 0)` }, svg("line", { y1: y(0), y2: y(1) }),
    axis.ticks.map(([share, text]) => svg("text", { x: -7, y: y(share) + 3.5, "text-anchor": "end" }, text)));
  if (range) g.append(svg("rect", { class: "brushed", x: -8, width: 16, y: y(range[1]) - 2, height: Math.max(4, y(range[0]) - y(range[1]) + 4), rx: 3 }));
  const hit = svg("rect", { class: "brush-area", x: -16, width: 32, y: y(1) - 8, height: y(0) - y(1) + 16 });
  hit.addEventListener("pointerdown", (event) => dragBrush(event, hit, range, y, on.brush));
  g.append(hit, brushHandle(axis, range, 0, y, on.brush), brushHandle(axis, range, 1, y, on.brush));
  return g;
}

// dragBrush makes, moves or stretches a range for as long as the pointer is down; a click removes it.
function dragBrush(event, hit, range, y, tell) {
  if (event.button !== 0) return;
  event.preventDefault();
  const top = hit.ownerSVGElement.getBoundingClientRect().top;
  const share = (e) => Math.min(1, Math.max(0, (e.clientY - top - y(0)) / (y(1) - y(0))));
  const from = share(event), near = range && range.map((end) => Math.abs(y(end) - (event.clientY - top)) <= brushGrip);
  const inside = range && !near[0] && !near[1] && inRange(from, range);
  const fixed = near && near[0] ? range[1] : near && near[1] ? range[0] : from;
  let moved = false;
  const move = (e) => {
    const to = share(e);
    moved = moved || Math.abs(e.clientY - event.clientY) > 3;
    if (!moved) return;
    if (inside) {
      const by = Math.min(1 - range[1], Math.max(-range[0], to - from));
      tell([range[0] + by, range[1] + by], true);
    } else tell([Math.min(fixed, to), Math.max(fixed, to)], true);
  };
  const done = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", done);
    removeEventListener("pointercancel", done);
    tell(moved ? undefined : null, false);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", done);
  addEventListener("pointercancel", done);
}

// brushHandle is an end of the brush for the keyboard: a slider, at the end of the axis where nothing is brushed.
function brushHandle(axis, range, end, y, tell) {
  const at = range ? range[end] : end, other = range ? range[1 - end] : 1 - end;
  const move = (to) => {
    const kept = end === 0 ? Math.min(other, Math.max(0, to)) : Math.max(other, Math.min(1, to));
    const ends = end === 0 ? [kept, other] : [other, kept];
    tell(ends[0] <= 1e-9 && ends[1] >= 1 - 1e-9 ? null : ends, false);
  };
  const steps = { ArrowUp: at + axis.step, ArrowRight: at + axis.step, ArrowDown: at - axis.step, ArrowLeft: at - axis.step, PageUp: at + 0.2, PageDown: at - 0.2, Home: 0, End: 1 };
  const sign = end === 0 ? 1 : -1;
  return svg("path", {
    class: range ? "brush-handle set" : "brush-handle", d: `M0 ${y(at)}l-6 ${sign * 8}h12z`, tabindex: 0, role: "slider", "data-handle": `${axis.column.name} ${end}`,
    "aria-label": `${title(axis.column)}, ${end === 0 ? "lowest" : "highest"} chosen`, "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(at * 100), "aria-valuetext": axis.text(at) + (axis.column.unit ? ` ${axis.column.unit}` : ""),
    onkeydown: (event) => {
      if (steps[event.key] === undefined) return;
      event.preventDefault();
      move(steps[event.key]);
    },
  });
}
