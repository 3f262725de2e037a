// What is shown about one point: beside the pointer, and in the panel when it is chosen.

function stateBadge(anyRow, frontier) {
  const row = standsFor(anyRow);
  if (statusOf(row) !== "ok") return html("span", { class: "badge bad" }, statusOf(row));
  if (frontier.has(row)) return html("span", { class: "badge" }, "on the frontier");
  if (infeasibleRows.has(row)) return html("span", { class: "badge bad" }, "misses a limit");
  if (noiseRows.has(row)) return html("span", { class: "badge", title: "No point is better by more than the 95 % intervals of both." }, "within noise of the frontier");
  return html("span", { class: "badge quiet" }, "dominated");
}

function withUnit(column, row) {
  const value = column.values[row];
  return formatValue(value) + (column.unit && value !== null ? ` ${unitFor(column, value)}` : "");
}

// averaged shows the mean over the replicates and half of its 95 % t-interval, or the value when there are none.
function averaged(column, row) {
  if (replicatesOf(row).length < 2 || column.kind !== "number" || means(column)[row] === null) return withUnit(column, row);
  return `${formatNumber(means(column)[row])} ± ${formatNumber(halfInterval(column, row))}${column.unit ? ` ${column.unit}` : ""}`;
}

// replicateNote says which of several replicates a row is; in the plot one mark stands for all.
function replicateNote(row) {
  const rows = replicatesOf(row);
  return rows.length < 2 ? null : `replicate ${rows.indexOf(row) + 1} of ${rows.length}`;
}

const axisPairs = (row) => axes.filter((a) => a.values[row] !== null).map((a) => [a.name, formatValue(a.values[row])]);

function tooltipContent(state, row, frontier) {
  const figures = [state.y, state.x].map((column) => [title(column), averaged(column, row)]);
  const n = replicatesOf(row).length;
  return [html("div", { class: "state" }, stateBadge(row, frontier), n > 1 ? html("span", { class: "muted" }, `mean of ${n} replicates ± 95 %`) : null),
    pairs([...axisPairs(row), null, ...figures, ...missPairs(row), ...below(timingPairs(row))]), warnings(row)];
}

// missPairs names the bounds that an infeasible row misses, below a rule.
function missPairs(row) {
  const misses = infeasibleRows.has(row) ? missesOf(row) : [];
  return below(misses.map((m) => [`misses ${title(m.column)}`, html("span", { class: "bad" }, missText(m))]));
}

// below puts entries under a rule.
const below = (entries) => (entries.length ? [null, ...entries] : []);

// placeTooltip keeps the box inside the chart, beside the point.
function placeTooltip(tooltip, drawn, row) {
  const [x, y] = drawn.place(row);
  const left = x + 18 + tooltip.offsetWidth > drawn.width ? x - 18 - tooltip.offsetWidth : x + 18;
  tooltip.style.left = `${Math.max(0, left)}px`;
  tooltip.style.top = `${Math.max(0, Math.min(y - tooltip.offsetHeight / 2, drawn.height - tooltip.offsetHeight))}px`;
}

// drawDetails fills the panel; suggestion says by which rule the row was chosen, and is empty when a person chose it.
function drawDetails(element, row, frontier, suggestion) {
  if (row === null) {
    fill(element);
    return;
  }
  const point = suggestion
    ? html("h3", { title: suggestion.rule }, `Suggested point (${suggestion.name})`)
    : html("h3", {}, "Chosen point");
  const metrics = report.columns.filter((c) => c.role === "metric" && c.values[row] !== null).map((c) => [title(c), withUnit(c, row)]);
  const others = report.columns.filter((c) => c.role !== "metric" && c.role !== "axis" && c.name !== "replicate" && c.values[row] !== null).map((c) => [c.name, withUnit(c, row)]);
  const objectives = report.objectives.map((o) => columnsByName.get(o.name)).filter((c) => c).map((c) => [title(c), averaged(c, row)]);
  const note = replicateNote(row);
  const command = commandOf(row);
  fill(element, html("div", { class: "details" },
    html("div", { class: "details-head" }, point, stateBadge(row, frontier)),
    note ? html("p", { class: "muted" }, note) : null,
    warnings(row),
    suggestion ? analyticNote(row) : null,
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of the point" },
      pairs([...axisPairs(row), null, ...objectives, ...missPairs(row), ...below(timingPairs(row)), null, ...metrics.filter(([name]) => !objectives.some(([o]) => o === name)), null, ...others])),
    command ? html("div", { class: "command" }, html("div", { class: "command-head" }, html("h3", {}, "Reproduce"), copyButton(command)), html("pre", {}, command)) : null,
  ));
}
