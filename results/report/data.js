// The report's data: columns, rows and what is computed about them.

const report = JSON.parse(document.getElementById("data").textContent);

const arrayTypes = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

// decoded turns base64 into an array of little-endian numbers.
function decoded(text, encoding) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return new arrayTypes[encoding](bytes.buffer);
}

// columnValues decodes a column: with a palette its data are places in it from 1 on, without one reals; null is no value.
function columnValues(column) {
  const data = decoded(column.data, column.encoding);
  const { palette } = column;
  const values = new Array(data.length);
  for (let row = 0; row < data.length; row++) {
    const v = data[row];
    if (palette) values[row] = v === 0 ? null : palette[v - 1];
    else values[row] = Number.isNaN(v) ? null : v;
  }
  return values;
}

// A column's values are decoded when they are first asked for: of a wide table the page shows a small part.
for (const column of report.columns) {
  Object.defineProperty(column, "values", {
    configurable: true,
    get() {
      const values = columnValues(column);
      Object.defineProperty(column, "values", { value: values });
      delete column.data;
      return values;
    },
  });
}

// RowSet is a set of rows as a byte a row, which stays quick for a hundred thousand.
class RowSet {
  constructor(rows = []) {
    this.in = new Uint8Array(report.rows);
    this.size = 0;
    this.become(rows);
  }

  has(row) { return this.in[row] === 1; }

  add(row) {
    if (this.in[row]) return;
    this.in[row] = 1;
    this.size++;
  }

  // become replaces the members, so that whoever holds the set sees the new ones.
  become(rows) {
    this.in.fill(0);
    this.size = 0;
    for (const row of rows) this.add(row);
  }

  *[Symbol.iterator]() {
    for (let row = 0; row < this.in.length; row++) {
      if (this.in[row]) yield row;
    }
  }
}

const columnsByName = new Map(report.columns.map((column) => [column.name, column]));
const isNumeric = (column) => column.kind === "number";
const axes = report.columns.filter((column) => column.role === "axis");
const variedAxes = axes.filter((column) => distinct(column).length > 1);
const numericColumns = report.columns.filter(isNumeric);
const plottable = numericColumns.filter((column) => column.role === "metric");
const statusColumn = columnsByName.get("status");

// The bits of report.marks.
const marks = report.marks ? decoded(report.marks, "u8") : new Uint8Array(report.rows);
const marked = { frontier: 1, infeasible: 2, fixed: 4, counted: 8 };
const rowsMarked = (bit) => new RowSet(Array.from(marks.keys()).filter((row) => marks[row] & bit));

// What follows from the bounds, which bounds.js moves.
const frontierRows = rowsMarked(marked.frontier);
const infeasibleRows = rowsMarked(marked.infeasible);
const noiseRows = new RowSet();

// The rows that differ only in their replicate are one candidate: its first row stands for it, with the means of the
// rows that count. Without replicates every row is one.
const candidateOf = report.candidates ? decoded(report.candidates, "u32") : null;
const membersOf = candidateOf ? groupMembers() : null;
const candidateRows = membersOf ? membersOf.map((rows) => rows[0]) : Array.from({ length: report.rows }, (_, row) => row);
const replicatesOf = (row) => (membersOf ? membersOf[candidateOf[row]] : [row]);
const standsFor = (row) => (row === null || !membersOf ? row : replicatesOf(row)[0]);

function groupMembers() {
  const members = [];
  candidateOf.forEach((candidate, row) => {
    if (!members[candidate]) members[candidate] = [];
    members[candidate].push(row);
  });
  return members;
}

function counted(column, row) {
  return replicatesOf(row).filter((r) => (!membersOf || marks[r] & marked.counted) && column.values[r] !== null).map((r) => column.values[r]);
}

// means are a column's values with those of each candidate averaged; words stay as they are.
function means(column) {
  if (!membersOf || column.kind !== "number") return column.values;
  if (!column.means) {
    column.means = new Array(report.rows).fill(null);
    for (const rows of membersOf) {
      const values = counted(column, rows[0]);
      const mean = values.length ? values.reduce((sum, v) => sum + (v - values[0]), 0) / values.length + values[0] : null;
      for (const row of rows) column.means[row] = mean;
    }
  }
  return column.means;
}

// halfInterval is half the width of the 95 % t-interval of a candidate's mean; 0 when one value is all there is.
function halfInterval(column, row) {
  const values = counted(column, row), mean = means(column)[row];
  if (values.length < 2) return 0;
  const variance = values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1);
  return report.tQuantiles[values.length] * Math.sqrt(variance / values.length);
}

// Rows that served different traffic have frontiers of their own.
const traffic = report.by.map((name) => columnsByName.get(name)).filter((c) => c);
const trafficOf = (row) => traffic.map((c) => formatValue(c.values[row])).join(" · ");

// trafficKinds are the different traffics: { labels, of }, with the place in labels of each row.
const trafficKinds = (() => {
  const places = new Map();
  const of = new Uint32Array(report.rows);
  for (let row = 0; row < (traffic.length ? report.rows : 0); row++) {
    const label = trafficOf(row);
    if (!places.has(label)) places.set(label, places.size);
    of[row] = places.get(label);
  }
  return { labels: traffic.length ? [...places.keys()] : [""], of };
})();

// splitByTraffic groups rows: [{ label, rows }], in the order in which the traffics first appear among them.
function splitByTraffic(rows) {
  const groups = new Map();
  for (const row of rows) {
    const kind = trafficKinds.of[row];
    const group = groups.get(kind);
    if (group) group.rows.push(row);
    else groups.set(kind, { label: trafficKinds.labels[kind], rows: [row] });
  }
  return [...groups.values()];
}

// statusOf is "ok" for files without a status column.
function statusOf(row) {
  return statusColumn ? statusColumn.values[row] : "ok";
}

// distinct lists a column's values in order: numbers by size, words by first appearance.
function distinct(column) {
  if (!column.distinct) {
    const values = column.palette && column.kind !== "bool" ? [...column.palette] : [...new Set(column.values.filter((v) => v !== null))];
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

// commandOf is the command line that simulates a row's point; empty when the table has none.
function commandOf(row) {
  if (!report.commands) return "";
  if (!report.commands.rows) {
    const codes = decoded(report.commands.data, report.commands.encoding);
    const starts = [0];
    codes.forEach((code, i) => { if (code === 0) starts.push(i + 1); });
    report.commands.rows = { codes, starts };
  }
  const { codes, starts } = report.commands.rows;
  return Array.from(codes.subarray(starts[row], starts[row + 1] - 1), (code) => report.commands.words[code - 1]).join(" ");
}
