// Frontiers: of the report's objectives, with its tolerances, and of any pair in the plot.

// frontierAmong returns the rows that no other dominates, best in the first objective first. objectives are
// [{ values, maximize, epsilon }]; a row without a value in one takes no part. Of rows that are equal in all, the first
// alone stays when keepFirst is set.
function frontierAmong(rows, objectives, keepFirst = false) {
  const complete = rows.filter((row) => objectives.every((o) => o.values[row] !== null));
  const figures = objectives.map((o) => {
    const sign = o.maximize ? -1 : 1;
    return Float64Array.from(complete, (row) => sign * stepOf(o.values[row], o.epsilon));
  });
  const k = objectives.length;
  const points = withoutBeaten(figures, complete.length).map((i) => [complete[i], ...figures.map((f) => f[i])]);
  const compare = (a, b) => {
    for (let o = 1; o <= k; o++) {
      if (a[o] !== b[o]) return a[o] - b[o];
    }
    return a[0] - b[0];
  };
  points.sort(compare);
  const keeps = k > 2 ? skyline(k) : staircase(k);
  const kept = [];
  let previous = null, previousKept = false;
  for (const point of points) {
    const equal = previous !== null && point.every((v, o) => o === 0 || v === previous[o]);
    if (!equal) [previous, previousKept] = [point, keeps(point)];
    if (previousKept && !(equal && keepFirst)) kept.push(point[0]);
  }
  return kept;
}

const fewPoints = 500;
const pivots = 6;

// withoutBeaten leaves out most of the points that some other dominates, since sorting many is slow: those behind a few
// points that are good all round, each with another weight. It takes the figures of n points, less being better, and
// returns the places of those that are left.
function withoutBeaten(figures, n) {
  let left = Array.from({ length: n }, (_, i) => i);
  for (let turn = 0; turn < pivots && left.length > fewPoints; turn++) {
    const pivot = goodPoint(figures, left, turn);
    left = left.filter((i) => {
      let worse = false;
      for (const f of figures) {
        if (f[i] < f[pivot]) return true;
        worse = worse || f[i] > f[pivot];
      }
      return !worse;
    });
  }
  return left;
}

// goodPoint is the best in a weighted sum of the figures, each as a share of its range.
function goodPoint(figures, places, turn) {
  const terms = figures.map((f, o) => {
    let low = Infinity, high = -Infinity;
    for (const i of places) {
      if (f[i] < low) low = f[i];
      if (f[i] > high) high = f[i];
    }
    return { f, low, scale: (turn > 0 && turn % figures.length === o ? 1 + 2 * turn : 1) / (high - low || 1) };
  });
  let best = places[0], least = Infinity;
  for (const i of places) {
    let sum = 0;
    for (const { f, low, scale } of terms) sum += (f[i] - low) * scale;
    if (sum < least) [best, least] = [i, sum];
  }
  return best;
}

// staircase decides for one or two objectives: rows come sorted, so the last figure must beat all before.
function staircase(k) {
  let best = Infinity;
  return (point) => {
    if (point[k] >= best) return false;
    best = point[k];
    return true;
  };
}

// skyline decides for more: rows come sorted, so whoever dominates a row came before it.
function skyline(k) {
  const kept = [];
  return (point) => {
    for (const other of kept) {
      let better = true;
      for (let o = 2; o <= k && better; o++) better = other[o] <= point[o];
      if (better) return false;
    }
    kept.push(point);
    return true;
  };
}

// stepOf returns the lower edge of the step that holds a value; values in one step count as equal.
function stepOf(value, epsilon) {
  if (!epsilon || epsilon.Size === 0 || value === 0) return value;
  if (!epsilon.Relative) return Math.floor(value / epsilon.Size) * epsilon.Size;
  const base = Math.log1p(epsilon.Size);
  return value < 0 ? -Math.exp(Math.ceil(Math.log(-value) / base) * base) : Math.exp(Math.floor(Math.log(value) / base) * base);
}

// reportObjectives are those that the report was made with.
const reportObjectives = report.objectives.map((o, i) => ({ column: columnsByName.get(o.name), maximize: o.maximize, epsilon: (report.epsilon || [])[i] }))
  .filter((o) => o.column).map((o) => ({ ...o, values: means(o.column) }));

// frontiersOf returns the frontier of each traffic, best x first: [{ label, rows }]. For the report's own two objectives
// it is the report's, which may have tolerances.
function frontiersOf(rows, x, y) {
  const own = report.objectives.length === 2 && [[x, y], [y, x]].some((pair) =>
    pair.every((c, i) => c.column.name === report.objectives[i].name && c.maximize === report.objectives[i].maximize));
  const sign = x.maximize ? -1 : 1;
  const frontier = (group) => (own
    ? group.filter((row) => frontierRows.has(row)).sort((a, b) => sign * (x.values[a] - x.values[b]) || a - b)
    : frontierAmong(group.filter((row) => !infeasibleRows.has(row)), [x, y]));
  return splitByTraffic(rows).map((group) => ({ label: group.label, rows: frontier(group.rows) }));
}

// nearFrontier returns, of the rows of one traffic that keep the bounds, those that no other is clearly better than: in
// every objective by more than the intervals of both. Without intervals that is the frontier.
function nearFrontier(rows) {
  const noisy = reportObjectives.map((o) => ({ sign: o.maximize ? 1 : -1, values: o.values, halves: halvesOf(o.column) }));
  const first = noisy[0];
  if (!first) return [];
  const lead = (a, b) => first.sign * (first.values[a] - first.values[b]);
  const order = rows.filter((row) => noisy.every((o) => o.values[row] !== null)).sort((a, b) => lead(b, a) || a - b);
  const front = order.filter((row) => frontierRows.has(row));
  const beaten = (row, others) => {
    for (const other of others) {
      if (lead(other, row) < 0) return false;
      if (clearlyBetter(noisy, other, row)) return true;
    }
    return false;
  };
  return order.filter((row) => frontierRows.has(row) || (!beaten(row, front) && !beaten(row, order)));
}

function clearlyBetter(noisy, a, b) {
  let more = false;
  for (const { sign, values, halves } of noisy) {
    const lead = sign * (values[a] - values[b]), margin = Math.hypot(halves[a], halves[b]);
    if (!(lead >= margin)) return false;
    more = more || lead > margin;
  }
  return more;
}

// halvesOf are the halves of the intervals of a column, by the first row of each candidate.
function halvesOf(column) {
  if (!column.halves) {
    column.halves = new Float64Array(report.rows);
    for (const row of candidateRows) column.halves[row] = halfInterval(column, row);
  }
  return column.halves;
}
