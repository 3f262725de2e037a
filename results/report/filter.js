// The table's filter: words that a row must contain, and comparisons such as workers>=4 or p99_ttft_ms<1500.

const comparison = /^([^<>=!]+)(<=|>=|!=|==|=|<|>)(.+)$/;

function holds(operator, a, b) {
  switch (operator) {
    case "<": return a < b;
    case "<=": return a <= b;
    case ">": return a > b;
    case ">=": return a >= b;
    case "!=": return a !== b;
  }
  return a === b;
}

// parseTerm turns one word of the filter into a test of a row.
function parseTerm(term) {
  const match = comparison.exec(term);
  const column = match && columnsByName.get(match[1]);
  if (!column) {
    const word = term.toLowerCase();
    return (row) => rowText(row).includes(word);
  }
  const bound = column.kind === "number" ? Number(match[3]) : match[3];
  return (row) => {
    const value = column.values[row];
    return value !== null && holds(match[2], column.kind === "number" ? value : String(value), bound);
  };
}

// filterRows lists the rows that pass every term.
function filterRows(text) {
  const terms = text.split(/\s+/).filter((t) => t).map(parseTerm);
  const rows = [];
  for (let row = 0; row < report.rows; row++) {
    if (terms.every((test) => test(row))) rows.push(row);
  }
  return rows;
}

const rowTexts = [];

// rowText is what a row says in all columns but the figures, which are compared rather than spelt.
function rowText(row) {
  if (rowTexts[row] === undefined) {
    const parts = report.columns.filter((c) => c.role !== "metric").map((c) => c.values[row]).filter((v) => v !== null);
    rowTexts[row] = parts.join(" ").toLowerCase();
  }
  return frontierRows.has(row) ? `${rowTexts[row]} frontier` : rowTexts[row];
}
