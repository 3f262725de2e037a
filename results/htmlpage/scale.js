// Scales map values to pixels.

// makeScale covers the values with a margin; log applies only when all are positive.
function makeScale(values, from, to, log) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (!(low <= high)) [low, high] = [0, 1];
  log = log && low > 0;
  const forward = log ? Math.log10 : (v) => v;
  let a = forward(low), b = forward(high);
  if (!log && a > 0 && a < 0.45 * b) a = 0;
  if (a === b) [a, b] = log ? [a - 0.5, b + 0.5] : [a - (Math.abs(a) || 1) * 0.1, b + (Math.abs(b) || 1) * 0.1];
  const margin = (b - a) * 0.05;
  b += margin;
  if (log || a !== 0) a -= margin;
  const scale = (v) => from + ((forward(v) - a) / (b - a)) * (to - from);
  scale.invert = (pixel) => {
    const at = a + ((pixel - from) / (to - from)) * (b - a);
    return log ? 10 ** at : at;
  };
  scale.log = log;
  scale.ticks = (count) => (log ? logTicks(a, b) : linearTicks(a, b, count, values.every(Number.isInteger)));
  return scale;
}

function linearTicks(a, b, count, whole) {
  const rough = Math.max((b - a) / count, whole ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough && (!whole || Number.isInteger(s)));
  const ticks = [];
  for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// logTicks marks 1, 2 and 5 of each decade, or whole decades when there are many.
function logTicks(a, b) {
  const every = Math.ceil((b - a) / 8);
  const multiples = b - a <= 3 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let d = Math.floor(a); d <= b; d += every) {
    for (const m of multiples) {
      const v = m * 10 ** d;
      if (Math.log10(v) >= a && Math.log10(v) <= b) ticks.push(Number(v.toPrecision(12)));
    }
  }
  return ticks;
}

// spansDecades says whether a logarithmic axis suits the values.
function spansDecades(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return low > 0 && high / low > 1000;
}
