// What is shown about one point: beside the pointer, and in the panel when it is chosen.

function stateBadge(row, frontier) {
  if (statusOf(row) !== "ok") return html("span", { class: "badge bad" }, statusOf(row));
  if (frontier.has(row)) return html("span", { class: "badge" }, "on the frontier");
  if (infeasibleRows.has(row)) return html("span", { class: "badge bad" }, "misses the SLA");
  return html("span", { class: "badge quiet" }, "dominated");
}

const withUnit = (column, row) => `${formatValue(column.values[row])}${column.unit && column.values[row] !== null ? ` ${column.unit}` : ""}`;
const axisPairs = (row) => axes.filter((a) => a.values[row] !== null).map((a) => [a.name, formatValue(a.values[row])]);

function tooltipContent(state, row, frontier) {
  const figures = [state.y, state.x].map((column) => [title(column), withUnit(column, row)]);
  return [html("div", { class: "state" }, stateBadge(row, frontier)), pairs([...axisPairs(row), null, ...figures])];
}

// placeTooltip keeps the box inside the chart, beside the point.
function placeTooltip(tooltip, drawn, row) {
  const [x, y] = drawn.place(row);
  const left = x + 18 + tooltip.offsetWidth > drawn.width ? x - 18 - tooltip.offsetWidth : x + 18;
  tooltip.style.left = `${Math.max(0, left)}px`;
  tooltip.style.top = `${Math.max(0, Math.min(y - tooltip.offsetHeight / 2, drawn.height - tooltip.offsetHeight))}px`;
}

function drawDetails(element, row, frontier) {
  if (row === null) {
    fill(element);
    return;
  }
  const metrics = report.columns.filter((c) => c.role === "metric" && c.values[row] !== null).map((c) => [title(c), withUnit(c, row)]);
  const others = report.columns.filter((c) => c.role !== "metric" && c.role !== "axis" && c.values[row] !== null).map((c) => [c.name, withUnit(c, row)]);
  const objectives = report.objectives.map((o) => columnsByName.get(o.name)).filter((c) => c).map((c) => [title(c), withUnit(c, row)]);
  const command = commandOf(row);
  fill(element, html("div", { class: "details" },
    html("div", { class: "details-head" }, html("h3", {}, "Chosen point"), stateBadge(row, frontier)),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of the chosen point" },
      pairs([...axisPairs(row), null, ...objectives, null, ...metrics.filter(([name]) => !objectives.some(([o]) => o === name)), null, ...others])),
    command ? html("div", { class: "command" }, html("div", { class: "command-head" }, html("h3", {}, "Reproduce"), copyButton(command)), html("pre", {}, command)) : null,
  ));
}
