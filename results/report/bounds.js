// The bounds that people move: which rows keep them, and what follows.

const holdsBound = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b };
const isUpper = (operator) => operator.startsWith("<");

// bounds are [{ column, operator, bound, name }]; a bound of null is none. Each figure that people bound has an entry,
// with the column that the report bounds or the first there is, and so has each further constraint on a range of numbers.
const bounds = usualBounds();

function usualBounds() {
  const own = report.constraints.filter((c) => c.bound !== null && columnsByName.has(c.column) && isNumeric(columnsByName.get(c.column)));
  const out = [];
  for (const limit of report.limits) {
    const columns = limit.columns.map((name) => columnsByName.get(name));
    const mine = own.filter((c) => limit.columns.includes(c.column));
    if (mine.length === 0) out.push({ name: limit.name, columns, column: columns[0], operator: "<=", bound: null });
    for (const c of mine) out.push({ name: limit.name, columns, column: columnsByName.get(c.column), operator: c.operator, bound: c.bound });
  }
  const listed = new Set(report.limits.flatMap((limit) => limit.columns));
  for (const c of own.filter((c) => !listed.has(c.column))) {
    const column = columnsByName.get(c.column);
    out.push({ name: title(column), columns: [column], column, operator: c.operator, bound: c.bound });
  }
  return out.map((b) => ({ ...b, usual: { column: b.column, bound: b.bound } }));
}

const boundsMoved = () => bounds.some((b) => b.bound !== b.usual.bound || (b.bound !== null && b.column !== b.usual.column));
const activeBounds = () => bounds.filter((b) => b.bound !== null);

// keepsBounds says whether a row keeps all bounds, or all but one.
function keepsBounds(row, except = null) {
  if (marks[row] & marked.fixed) return false;
  return bounds.every((b) => {
    if (b.bound === null || b === except) return true;
    const value = means(b.column)[row];
    return value !== null && holdsBound[b.operator](value, b.bound);
  });
}

// applyBounds finds the rows that keep the bounds and their frontiers. As the report has them, they are the report's.
function applyBounds() {
  if (boundsMoved()) {
    const feasible = candidateRows.filter((row) => keepsBounds(row));
    const isFeasible = new RowSet(feasible);
    infeasibleRows.become(withReplicates(candidateRows.filter((row) => !isFeasible.has(row))));
    frontierRows.become(reportObjectives.length
      ? splitByTraffic(feasible).flatMap((group) => withReplicates(frontierAmong(group.rows, reportObjectives, report.keepFirst))) : []);
  } else {
    infeasibleRows.become(rowsMarked(marked.infeasible));
    frontierRows.become(rowsMarked(marked.frontier));
  }
  applyNoise();
  tell("bounds");
}

function applyNoise() {
  if (!membersOf) return;
  const feasible = candidateRows.filter((row) => !infeasibleRows.has(row));
  noiseRows.become(splitByTraffic(feasible).flatMap((group) => withReplicates(nearFrontier(group.rows).filter((row) => !frontierRows.has(row)))));
}

const withReplicates = (rows) => (membersOf ? rows.flatMap(replicatesOf) : rows);

// missesOf says which bounds a row does not keep and by how much: [{ column, operator, bound, value, excess }].
function missesOf(row) {
  return activeBounds().map((b) => ({ ...b, value: means(b.column)[row] }))
    .filter((b) => b.value !== null && !holdsBound[b.operator](b.value, b.bound))
    .map((b) => ({ ...b, excess: Math.abs(b.value - b.bound) / Math.max(Math.abs(b.bound), 1e-9) }));
}

const opposite = { "<": "≥", "<=": ">", ">": "≤", ">=": "<" };

// missText reads "6,114 > 1,000 ms (+511 %)".
function missText({ column, operator, bound, value }) {
  const share = bound === 0 ? "" : ` (${((value / bound - 1) * 100).toLocaleString("en-US", { maximumSignificantDigits: 3, signDisplay: "always" })} %)`;
  return `${formatNumber(value)} ${opposite[operator]} ${formatNumber(bound)}${column.unit ? ` ${column.unit}` : ""}${share}`;
}

// closestToBounds returns, for each traffic without a frontier, the row whose largest miss is the smallest share of its
// bound: [{ row, misses }]. Rows without a value in an objective or a bounded column do not count.
function closestToBounds() {
  const out = [];
  for (const { rows } of splitByTraffic(candidateRows)) {
    if (rows.some((row) => frontierRows.has(row))) continue;
    let best = null, least = Infinity;
    for (const row of rows) {
      if (marks[row] & marked.fixed || reportObjectives.some((o) => o.values[row] === null) || activeBounds().some((b) => means(b.column)[row] === null)) continue;
      const misses = missesOf(row);
      const worst = Math.max(...misses.map((m) => m.excess));
      if (misses.length && worst < least) [best, least] = [{ row, misses }, worst];
    }
    if (best) out.push(best);
  }
  return out;
}

// boundText writes a bound as --where takes it.
const boundText = (b) => `${/^[\w.+-]+$/.test(b.column.name) ? b.column.name : `\`${b.column.name}\``} ${b.operator} ${b.bound}`;

// allBounds are those that people move, then the others.
const allBounds = () => [...activeBounds().map(boundText), ...report.constraints.filter((c) => c.bound === null).map((c) => c.text)];

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : shellQuoted(text));

// paretoCommand is the command line that finds the frontier of the plot.
function paretoCommand(objectives) {
  const words = ["servegrid pareto", ...report.sources.map(shellWord)];
  const own = (report.ownObjectives || []).map((o) => `${o.maximize}${o.name}`).sort();
  if (String(objectives.map((o) => `${o.maximize}${o.name}`).sort()) !== String(own)) {
    for (const o of objectives) words.push(o.maximize ? "--maximize" : "--minimize", shellWord(o.name));
  }
  const where = allBounds();
  const kept = report.ownConstraints.every((text) => where.includes(text));
  if (!kept) words.push("--no-sla");
  const rest = where.filter((text) => !kept || !report.ownConstraints.includes(text));
  if (rest.length) words.push("--where", shellQuoted(rest.join(" && ")));
  if (String(report.by) !== String(report.ownBy || [])) words.push("--by", shellWord(report.by.join(",") || "none"));
  return words.join(" ");
}
