// The report's data: columns, rows and what is computed about them.

const report = JSON.parse(document.getElementById("data").textContent);

for (const column of report.columns) {
  if (column.kind === "string") {
    column.words = column.words || [];
    column.values = column.values.map((code) => (code === null ? null : column.words[code]));
  }
}

const columnsByName = new Map(report.columns.map((column) => [column.name, column]));
const frontierRows = new Set(report.frontier);
const infeasibleRows = new Set(report.infeasible);
const isNumeric = (column) => column.kind === "number";
const axes = report.columns.filter((column) => column.role === "axis");
const variedAxes = axes.filter((column) => distinct(column).length > 1);
const numericColumns = report.columns.filter(isNumeric);
const plottable = numericColumns.filter((column) => column.role === "metric");
const statusColumn = columnsByName.get("status");

// The rows that differ only in their replicate are one candidate: its first row stands for it, with the means of the
// rows that count. Without replicates every row is one.
const membersOf = new Map();
for (let row = 0; row < report.rows; row++) {
  const candidate = report.candidates ? report.candidates[row] : row;
  if (!membersOf.has(candidate)) membersOf.set(candidate, []);
  membersOf.get(candidate).push(row);
}
const candidateRows = [...membersOf.values()].map((rows) => rows[0]);
const replicatesOf = (row) => membersOf.get(report.candidates ? report.candidates[row] : row);
const standsFor = (row) => (row === null ? null : replicatesOf(row)[0]);

function counted(column, row) {
  return replicatesOf(row).filter((r) => (!report.counted || report.counted[r]) && column.values[r] !== null).map((r) => column.values[r]);
}

// means are a column's values with those of each candidate averaged; words stay as they are.
function means(column) {
  if (!report.candidates || column.kind !== "number") return column.values;
  if (!column.means) {
    column.means = column.values.map((_, row) => {
      const values = counted(column, row);
      return values.length ? values.reduce((sum, v) => sum + (v - values[0]), 0) / values.length + values[0] : null;
    });
  }
  return column.means;
}

function deviation(column, row) {
  const values = counted(column, row), mean = means(column)[row];
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length);
}

// Rows that served different traffic have frontiers of their own.
const traffic = report.by.map((name) => columnsByName.get(name)).filter((c) => c);
const trafficOf = (row) => traffic.map((c) => formatValue(c.values[row])).join(" · ");

// splitByTraffic groups rows: [{ label, rows }].
function splitByTraffic(rows) {
  const groups = new Map();
  for (const row of rows) {
    const label = trafficOf(row);
    if (!groups.has(label)) groups.set(label, { label, rows: [] });
    groups.get(label).rows.push(row);
  }
  return [...groups.values()];
}

// missesOf says which bounds a row does not keep and by how much.
function missesOf(row) {
  const keeps = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "==": (a, b) => a === b, "!=": (a, b) => a !== b };
  const opposite = { "<": "≥", "<=": ">", ">": "≤", ">=": "<", "==": "≠", "!=": "=" };
  const out = [];
  for (const bound of report.constraints) {
    const column = columnsByName.get(bound.column);
    const value = column && column.kind === "number" ? means(column)[row] : null;
    if (bound.bound === null || value === null || keeps[bound.operator](value, bound.bound)) continue;
    const share = bound.bound === 0 ? "" : ` (${((value / bound.bound - 1) * 100).toLocaleString("en-US", { maximumSignificantDigits: 3, signDisplay: "always" })} %)`;
    out.push([title(column), `${formatNumber(value)} ${opposite[bound.operator]} ${formatNumber(bound.bound)}${column.unit ? ` ${column.unit}` : ""}${share}`]);
  }
  return out;
}

// statusOf is "ok" for files without a status column.
function statusOf(row) {
  return statusColumn ? statusColumn.values[row] : "ok";
}

// distinct lists a column's values in order: numbers by size, words by first appearance.
function distinct(column) {
  if (!column.distinct) {
    const values = [...new Set(column.values.filter((v) => v !== null))];
    column.distinct = column.kind === "number" ? values.sort((a, b) => a - b) : values;
  }
  return column.distinct;
}

// maximizes says whether more is better: as an objective states it, else as the metric has it, else yes.
function maximizes(column) {
  const objective = report.objectives.find((o) => o.name === column.name);
  return objective ? objective.maximize : column.better !== "lower";
}

const abbreviations = new Map([
  ["ttft", "TTFT"], ["ttst", "TTST"], ["tpot", "TPOT"], ["itl", "ITL"], ["e2e", "E2E"], ["gpu", "GPU"], ["gpus", "GPUs"],
  ["sla", "SLA"], ["tp", "TP"], ["dp", "DP"], ["mtok", "M tokens"], ["kv", "KV"], ["id", "ID"], ["std", "standard deviation of"],
]);

// title turns a metric's column name into words, without the unit that stands beside it. Other names are keys that
// people type, and stay.
function title(column) {
  if (column.role !== "metric") return column.name;
  const words = column.name.replace(/_(ms|rps)$|_(tok_s|usd|kwh|j)(?=_|$)|_s$/, "").split("_");
  const text = words.map((w) => abbreviations.get(w) || w).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function formatValue(value) {
  if (value === null) return "–";
  return typeof value === "number" ? formatNumber(value) : String(value);
}

// unitFor drops the plural of a single thing: 1 GPU.
const unitFor = (column, value) => (value === 1 && /^[A-Za-z-]{3,}s$/.test(column.unit) ? column.unit.slice(0, -1) : column.unit);

// configuration is a short line that tells a row from others; words speak for themselves, numbers need their axis.
function configuration(row) {
  return variedAxes.filter((a) => a.values[row] !== null).map((a) => (a.kind === "string" ? a.values[row] : `${a.name} ${formatValue(a.values[row])}`)).join(" · ");
}

function commandOf(row) {
  return report.commands ? report.commands.prefix + report.commands.rests[row] : "";
}
