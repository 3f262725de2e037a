// Colours and shapes of series. Words get the Okabe-Ito colours, which people with any colour vision tell apart, and
// a shape each; numbers get the viridis ramp in order of size.

const wordColors = {
  light: ["#0072b2", "#e08a00", "#009e73", "#c8589a", "#d55e00", "#3fa7dd", "#6b7280"],
  dark: ["#5aaeea", "#f2b134", "#33c79c", "#e79ac6", "#ff8548", "#a5dcf7", "#a3adba"],
};
const viridis = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const shapes = ["circle", "square", "triangle", "diamond", "triangle-down", "cross", "circle"];

// rampColor takes a share from 0 to 1; the ends that vanish on the background are cut off.
function rampColor(share) {
  const [from, to] = isDark() ? [0.3, 1] : [0.04, 0.84];
  const at = (from + share * (to - from)) * (viridis.length - 1);
  const i = Math.min(viridis.length - 2, Math.floor(at));
  const channel = (hex, n) => parseInt(hex.slice(1 + 2 * n, 3 + 2 * n), 16);
  const mix = [0, 1, 2].map((n) => Math.round(channel(viridis[i], n) + (channel(viridis[i + 1], n) - channel(viridis[i], n)) * (at - i)));
  return `rgb(${mix.join(" ")})`;
}

// makeSeries splits rows by a column's value: [{label, color, shape, rows}]. Words beyond the palette share the last
// series.
function makeSeries(column, rows) {
  const palette = wordColors[isDark() ? "dark" : "light"];
  if (!column) return [{ label: "all points", color: palette[0], shape: "circle", rows }];
  const values = distinct(column);
  const numeric = isNumeric(column);
  const limit = palette.length - 1;
  const series = values.map((value, i) => ({
    label: !numeric && i >= limit && values.length > palette.length ? "others" : formatValue(value),
    color: numeric ? rampColor(values.length > 1 ? i / (values.length - 1) : 0.5) : palette[Math.min(i, limit)],
    shape: numeric ? "circle" : shapes[Math.min(i, limit)],
    rows: [],
  }));
  if (!numeric && values.length > palette.length) series.length = palette.length;
  const place = new Map(values.map((value, i) => [value, Math.min(i, series.length - 1)]));
  const none = { label: "none", color: palette[limit], shape: "circle", rows: [] };
  for (const row of rows) {
    const value = column.values[row];
    (value === null ? none : series[place.get(value)]).rows.push(row);
  }
  return [...series, none].filter((s) => s.rows.length > 0);
}

// coloursFor tells the colour of each point, and whether its series shows: { of, shown }.
function coloursFor(state) {
  let made = null, column = null, dark = false;
  const current = () => {
    if (made === null || column !== state.color || dark !== isDark()) {
      [column, dark] = [state.color, isDark()];
      made = new Array(report.rows);
      for (const s of makeSeries(column, candidateRows)) {
        for (const row of s.rows) made[row] = s;
      }
    }
    return made;
  };
  return {
    of: (row) => current()[standsFor(row)].color,
    shown: (row) => !state.hidden.has(current()[standsFor(row)].label),
  };
}

// outline is the path of a shape around a point, drawn clockwise.
function outline(shape, x, y, r) {
  switch (shape) {
    case "square": { const a = r * 0.88; return `M${x - a} ${y - a}h${2 * a}v${2 * a}h${-2 * a}z`; }
    case "triangle": return `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-2.3 * r}z`;
    case "triangle-down": return `M${x} ${y + r * 1.2}l${-r * 1.15} ${-r * 2}h${2.3 * r}z`;
    case "diamond": { const a = r * 1.25; return `M${x} ${y - a}l${a} ${a}l${-a} ${a}l${-a} ${-a}z`; }
    case "cross": { const a = r * 0.42, b = r * 1.1; return `M${x - a} ${y - b}h${2 * a}v${b - a}h${b - a}v${2 * a}h${a - b}v${b - a}h${-2 * a}v${a - b}h${a - b}v${-2 * a}h${b - a}z`; }
  }
  return circle(x, y, r, 1);
}

// circle is the path of a circle, clockwise or, with a turn of 0, the other way.
const circle = (x, y, r, turn) => `M${x - r} ${y}a${r} ${r} 0 1 ${turn} ${2 * r} 0a${r} ${r} 0 1 ${turn} ${-2 * r} 0z`;

// ringed is the path of a shape with a hole: drawn the other way it stays empty, and marks that overlap stay full.
const ringed = (shape, x, y, r) => outline(shape, x, y, r) + circle(x, y, r * 0.48, 0);

// crossed is the path of two strokes across each other, and not to be filled.
function crossed(x, y, r) {
  const a = r * 0.8;
  return `M${x - a} ${y - a}l${2 * a} ${2 * a}M${x + a} ${y - a}l${-2 * a} ${2 * a}`;
}

// targeted is the path of a smaller shape inside a thin ring.
const targeted = (shape, x, y, r) => outline(shape, x, y, r * 0.7) + circle(x, y, r * 1.5, 1) + circle(x, y, r * 1.25, 0);

// mark is the path of a row's mark: one with a hole where its timing is analytic, and one in a ring where it was measured live.
const mark = (shape, row, x, y, r) => (isLive(row) ? targeted : isAnalytic(row) ? ringed : outline)(shape, x, y, r);

// missMark is the path of the mark of a row that misses the SLA: a cross, inside a ring where its timing is analytic.
const missMark = (row, x, y, r) => crossed(x, y, isAnalytic(row) ? r * 0.8 : r) + (isAnalytic(row) ? outline("circle", x, y, r * 1.25) : "");
