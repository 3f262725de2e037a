// Where the durations of passes come from: which points are analytic, how far off they may be, what is suspect.

const constants = new Map(report.constants.map((c) => [c.name, c.value]));

// provenanceOf reads a column of a point, or the value that all points have.
function provenanceOf(row, name) {
  const column = columnsByName.get(name);
  if (column) return column.values[row];
  const text = constants.get(name);
  return text === undefined || text === "" ? null : text;
}

const numberOf = (row, name) => Number(provenanceOf(row, name) || 0);
const isAnalytic = (row) => provenanceOf(row, "timing_source") === "analytic";
const isSuspect = (row) => String(provenanceOf(row, "timing_anomaly")) === "true";
const percent = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 2 });

// timingPairs are the facts about a point's timing; none when all points have a model that has neither data nor bounds.
function timingPairs(row) {
  const source = provenanceOf(row, "timing_source"), data = provenanceOf(row, "timing_data");
  if (source === null || (data === null && !columnsByName.has("timing_source"))) return [];
  const out = [["timing", data === null ? source : `${source} · ${data}`]];
  const [prefill, decode] = ["timing_prefill_error_pct", "timing_decode_error_pct"].map((name) => numberOf(row, name));
  if (prefill > 0) out.push(["error", `±${percent(prefill)} % prefill, ±${percent(decode)} % decode${isAnalytic(row) ? "" : " (p99 against its source)"}`]);
  const outside = numberOf(row, "extrapolated_pass_ratio");
  if (outside > 0) out.push(["outside of the data", `${percent(100 * outside)} % of the passes`]);
  return out;
}

const suspectText = "The source of these tables is suspect: a pass takes more than twice as long as on the best backend.";

// suspectNote warns of a point whose tables are suspect.
const suspectNote = (row) => (isSuspect(row) ? html("p", { class: "bad note" }, `⚠ ${suspectText}`) : null);

// timingKeys are the lines of the legend about the timing of rows.
function timingKeys(rows) {
  const analytic = rows.filter(isAnalytic), suspect = rows.filter(isSuspect).length;
  const band = (name) => {
    const values = analytic.map((row) => numberOf(row, name));
    const [low, high] = [Math.min(...new Set(values)), Math.max(...new Set(values))];
    return low === high ? percent(low) : `${percent(low)}–${percent(high)}`;
  };
  const out = [];
  if (analytic.length > 0) out.push(["ring", `analytic: ±${band("timing_prefill_error_pct")} % prefill, ±${band("timing_decode_error_pct")} % decode`]);
  if (suspect > 0) out.push(["", `⚠ ${plural(suspect, "point")} from suspect tables`, suspectText]);
  return out;
}
