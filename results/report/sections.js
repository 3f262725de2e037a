// The parts of the page around the charts: summary, key figures, cautions, cliffs, failures, spec and footer.

const mostCounts = 4;

const okCount = candidateRows.filter((row) => !statusColumn || replicatesOf(row).some((r) => statusOf(r) === "ok")).length;

function drawTiles(onPin) {
  const tile = (label, figure, unit, note, row) => html(row === undefined ? "div" : "button", { class: "tile", type: row === undefined ? null : "button", onclick: () => row !== undefined && onPin(row) },
    html("span", { class: "label" }, label), html("span", { class: "figure" }, figure, unit ? html("small", {}, unit) : null), html("span", { class: "note" }, note || "\u00a0"));
  const best = candidateRows.filter((row) => frontierRows.has(row));
  const near = candidateRows.filter((row) => noiseRows.has(row)).length;
  const rule = allBounds().join(" · ") || "no other point is better in every way";
  const split = traffic.length ? ` · for each ${report.by.join(" and ")}` : "";
  const tiles = [tile("On the frontier", String(best.length), `of ${plural(okCount, "point")}`, `${near ? `${near} more within noise · ` : ""}${rule}${split}`)];
  for (const { row, misses } of closestToBounds().slice(0, mostCounts)) {
    const text = misses.map((m) => `${m.column.name} ${formatNumber(m.value)} ${opposite[m.operator]} ${m.bound}`).join(" and ");
    tiles.push(tile(`Closest to the bounds${traffic.length ? ` of ${trafficOf(row)}` : ""}`, text, "", configuration(row), row));
  }
  for (const objective of report.objectives.slice(0, 4)) {
    const column = columnsByName.get(objective.name);
    if (!column || best.length === 0) continue;
    const sign = objective.maximize ? 1 : -1;
    const values = means(column);
    const top = best.reduce((a, b) => (sign * values[b] > sign * values[a] ? b : a));
    tiles.push(tile(`${objective.maximize ? "Highest" : "Lowest"} ${title(column).replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`, formatValue(values[top]), unitFor(column, values[top]), configuration(top), top));
  }
  fill(byID("tiles"), tiles);
}

function drawSummary() {
  const counts = new Map();
  for (let row = 0; row < report.rows; row++) counts.set(statusOf(row), (counts.get(statusOf(row)) || 0) + 1);
  const parts = [plural(candidateRows.length, "point"), ...[...counts].filter(([s]) => s !== "ok").map(([s, n]) => `${n} ${s}`)];
  if (membersOf) parts.splice(1, 0, `${report.rows.toLocaleString("en-US")} rows with replicates`);
  if (variedAxes.length) parts.push(`${variedAxes.length} ${variedAxes.length === 1 ? "axis" : "axes"}: ${variedAxes.map((a) => a.name).join(", ")}`);
  const workloads = Object.keys(report.workloads || {});
  if (workloads.length) parts.push(`workload${workloads.length === 1 ? "" : "s"} ${workloads.join(", ")}`);
  byID("summary").textContent = parts.join(" · ");
}

// drawCautions lists what to know before trusting the frontier.
function drawCautions() {
  byID("cautions").hidden = report.cautions.length === 0;
  fill(byID("cautions"), report.cautions.map((text) => html("li", {}, `⚠ ${text}`)));
}

// drawCliffs says from which value of an axis on the bounds are missed.
function drawCliffs() {
  byID("cliffs-card").hidden = report.cliffs.length === 0;
  const rest = (cliff) => [[cliff.more, "more that lose it"], [cliff.kept, "that keep it at all values"], [cliff.lost, "that never keep it"]]
    .filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`).join(" · ");
  fill(byID("cliffs"), report.cliffs.map((cliff) => html("div", { class: "failure" },
    html("div", {}, html("div", { class: "reason" }, cliff.axis), html("div", { class: "muted" }, rest(cliff))),
    html("ul", {}, cliff.lines.map((line) => html("li", {}, line.of ? html("span", { class: "muted" }, `${line.of}: `) : null, line.text))))));
}

function drawFailures(setFilter) {
  const reasons = columnsByName.get("reason"), errors = columnsByName.get("error");
  const groups = new Map();
  for (let row = 0; row < report.rows; row++) {
    if (statusOf(row) === "ok") continue;
    const reason = (reasons && reasons.values[row]) || "unknown";
    const error = statusOf(row) === "stopped" ? "The SLA could no longer be kept; the column error says which bound was lost when." : (errors && errors.values[row]) || "";
    const key = JSON.stringify([statusOf(row), reason, error]);
    if (!groups.has(key)) groups.set(key, { status: statusOf(row), reason, error, rows: [] });
    groups.get(key).rows.push(row);
  }
  byID("failures-card").hidden = groups.size === 0;
  const most = 6;
  const line = (row) => html("li", {}, configuration(row) || `point ${row + 1}`);
  fill(byID("failures"), [...groups.values()].map((g) => html("div", { class: "failure" },
    html("div", {}, html("div", { class: "reason" }, g.reason), html("div", { class: "muted" }, `${g.rows.length} ${g.status}`)),
    html("div", {}, html("p", {}, g.error), html("ul", { class: "muted" }, g.rows.slice(0, most).map(line)),
      g.rows.length > most ? html("button", { type: "button", onclick: () => {
        setFilter(`status=${g.status} ${g.reason.includes(" ") || g.reason === "unknown" ? "" : `reason=${g.reason}`}`.trim());
        byID("table-heading").scrollIntoView();
      } }, `Show all ${g.rows.length} in the table`) : null))));
}

function drawSpec() {
  const facts = (heading, entries) => (entries.length ? [html("h3", {}, heading), html("dl", { class: "facts" }, entries.map(([k, v]) => [html("dt", {}, k), html("dd", {}, v === "" ? "–" : v)]))] : []);
  const sides = [facts("Equal at all points", report.constants.map((c) => [c.name, c.value])), facts("Workload digests", Object.entries(report.workloads || {})), facts("Versions", Object.entries(report.versions || {}))];
  byID("spec-card").hidden = !report.spec && sides.every((s) => s.length === 0);
  fill(byID("spec"), report.spec ? html("div", {}, html("pre", { tabindex: 0, role: "region", "aria-label": "Spec as it was run" }, report.spec), html("p", {}, copyButton(report.spec))) : null, html("div", {}, sides.flat()));
}

// drawFooter says where the figures come from.
function drawFooter() {
  const column = columnsByName.get("timing_source");
  const timing = column ? distinct(column) : [constants.get("timing_source") || constants.get("timing.source")].filter((s) => s);
  const version = (report.versions || {}).simulator || constants.get("simulator_version");
  const parts = [];
  if (timing.length) parts.push(`${timing.join(" and ")} timing${timing.includes("polynomial") ? ": see docs/timing.md" : ""}`);
  if (version) parts.push(`simulator version ${version}`);
  byID("footer").textContent = parts.join(" · ");
}
