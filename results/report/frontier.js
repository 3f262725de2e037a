// The frontier of the plotted pair.

// pairFrontier returns the rows that no other row dominates, from the best x on. Equal rows all stay.
function pairFrontier(rows, x, y) {
  const better = (column) => {
    const sign = column.maximize ? 1 : -1;
    return (row) => sign * column.values[row];
  };
  const bx = better(x), by = better(y);
  const sorted = [...rows].sort((a, b) => bx(b) - bx(a) || by(b) - by(a) || a - b);
  const kept = [];
  let best = -Infinity, bestX = -Infinity;
  for (const row of sorted) {
    if (by(row) > best || (by(row) === best && bx(row) === bestX)) {
      kept.push(row);
      best = by(row);
      bestX = bx(row);
    }
  }
  return kept;
}

// frontierOf uses the frontier that the report was made with for its own two objectives, which may have tolerances,
// and computes that of any other pair.
function frontierOf(rows, x, y) {
  const own = report.objectives.length === 2 && [[x, y], [y, x]].some((pair) =>
    pair.every((c, i) => c.column.name === report.objectives[i].name && c.maximize === report.objectives[i].maximize));
  if (!own) return pairFrontier(rows.filter((row) => !infeasibleRows.has(row)), x, y);
  const sign = x.maximize ? -1 : 1;
  return [...report.frontier].sort((a, b) => sign * (x.values[a] - x.values[b]) || a - b);
}
