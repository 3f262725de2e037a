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
const isLive = (row) => provenanceOf(row, "source") === "live";
const isSuspect = (row) => String(provenanceOf(row, "timing_anomaly")) === "true";
const percent = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 2 });

// wholePercent writes a share from 0 to 1; what is neither nothing nor everything never looks so.
function wholePercent(share) {
  const rounded = Math.round(100 * share);
  if (share > 0 && rounded < 1) return "<1 %";
  return share < 1 && rounded > 99 ? ">99 %" : `${rounded} %`;
}

// tableSource is the program that tables come from, as their data names it at its end.
const tableSource = (data) => (/\(([^\s()]+)[^()]*\)$/.exec(data || "") || [])[1] || "their source";

// errorText says how far prices may be off: tables are compared with their source and not with a GPU.
function errorText(row) {
  const [prefill, decode] = ["timing_prefill_error_pct", "timing_decode_error_pct"].map((name) => percent(numberOf(row, name)));
  return isAnalytic(row) ? `±${prefill} % prefill, ±${decode} % decode` : `within ${prefill} % (prefill) and ${decode} % (decode) of ${tableSource(provenanceOf(row, "timing_data"))}`;
}

// sourceWords say in words what the mark of a row says of where its figures come from; "" for an ordinary simulation.
const sourceWords = (row) => (isLive(row) ? "live" : isAnalytic(row) ? "analytic timing" : "");

// timingPairs are the facts about a point's timing; none when all points have a model that has neither data nor bounds.
function timingPairs(row) {
  if (isLive(row)) return [["source", "live, measured at an endpoint"]];
  const source = provenanceOf(row, "timing_source"), data = provenanceOf(row, "timing_data");
  if (source === null || (data === null && !columnsByName.has("timing_source"))) return [];
  const out = [["timing", data === null ? source : `${source} · ${data}`]];
  if (numberOf(row, "timing_prefill_error_pct") > 0) out.push(["error", errorText(row)]);
  const outside = numberOf(row, "extrapolated_pass_ratio");
  if (outside > 0) out.push(["outside of the data", `${wholePercent(outside)} of the passes`]);
  return out;
}

const suspectText = "The source of these tables is suspect: a pass takes more than twice as long as on the best backend, or attention less than the peak of the GPU allows.";

// warnings are what to know before trusting a point.
function warnings(row) {
  const rejected = numberOf(row, "rejected_requests");
  const texts = [isSuspect(row) ? suspectText : null,
    rejected > 0 ? `Rejects ${formatNumber(rejected)} of ${plural(numberOf(row, "num_requests"), "request")}: prompts longer than the context or the KV pool.` : null];
  return texts.filter((text) => text).map((text) => html("p", { class: "bad note" }, `⚠ ${text}`));
}

// analyticNote warns of a suggestion that nobody has measured.
const analyticNote = (row) => (isAnalytic(row) ? html("p", { class: "bad note" }, `⚠ Its timing is analytic, a roofline: ${errorText(row)}. Measure it before you decide.`) : null);

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
  const live = rows.filter(isLive).length;
  if (live > 0) out.push(["target", `live: measured at an endpoint${live < rows.length ? "" : ", all of them"}`]);
  if (suspect > 0) out.push(["", `⚠ ${plural(suspect, "point")} from suspect tables`, suspectText]);
  return out;
}
