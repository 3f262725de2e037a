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

// frontiersOf returns the frontier of each traffic: [{ label, rows }]. It uses those that the report was made with for
// its own two objectives, which may have tolerances, and computes those of any other pair.
function frontiersOf(rows, x, y) {
  const own = report.objectives.length === 2 && [[x, y], [y, x]].some((pair) =>
    pair.every((c, i) => c.column.name === report.objectives[i].name && c.maximize === report.objectives[i].maximize));
  const sign = x.maximize ? -1 : 1;
  const frontier = (group) => (own
    ? group.filter((row) => frontierRows.has(row)).sort((a, b) => sign * (x.values[a] - x.values[b]) || a - b)
    : pairFrontier(group.filter((row) => !infeasibleRows.has(row)), x, y));
  return splitByTraffic(rows).map((group) => ({ label: group.label, rows: frontier(group.rows) }));
}
