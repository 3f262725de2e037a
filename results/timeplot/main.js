// Puts the page together: the plots, the tracks, and the time that they share.

const plots = byID("plots"), tracks = byID("tracks");
const drawings = [
  ...data.charts.map((chart, i) => makePlot(chart, i, plots, redrawAll)),
  ...data.tracks.map((track, i) => makeTrack(track, i, tracks)),
];

// moments are the times that the arrow keys step through.
const moments = [...new Set(data.times.flat().concat(data.tracks.flatMap((t) => t.rows.flatMap((row) => row.times))))].sort((a, b) => a - b);

function redrawAll() {
  for (const d of drawings) d.draw();
  byID("range").textContent = view.from === 0 && view.to === data.end ? `Whole run, ${clock(data.end)}` : `${clock(view.from)} to ${clock(view.to)}`;
}

function setCursor(t) {
  view.cursor = t;
  byID("cursor").textContent = t === null ? "" : clock(t);
  for (const d of drawings) d.moveTo(t);
}

// show zooms to a stretch of time, at least a thousandth of the whole.
function show(from, to) {
  const least = data.end / 1000;
  if (to - from < least) [from, to] = [(from + to - least) / 2, (from + to + least) / 2];
  view.from = Math.max(0, from);
  view.to = Math.min(data.end, to);
  redrawAll();
}

function zoom(factor) {
  const middle = view.cursor !== null && view.cursor >= view.from && view.cursor <= view.to ? view.cursor : (view.from + view.to) / 2;
  show(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
}

function pan(share) {
  const span = view.to - view.from;
  const from = Math.min(Math.max(0, view.from + share * span), data.end - span);
  show(from, from + span);
}

// step moves the cursor to the next moment and keeps it in sight.
function step(by) {
  const at = view.cursor === null ? (by > 0 ? -1 : moments.length) : by > 0 ? atOrBefore(moments, view.cursor) : moments.findIndex((t) => t >= view.cursor - 1e-9);
  reach(moments[Math.min(moments.length - 1, Math.max(0, (at < 0 && by < 0 ? moments.length : at) + by))]);
}

function reach(t) {
  if (t === undefined) return;
  if (t < view.from || t > view.to) {
    const half = (view.to - view.from) / 2;
    const from = Math.min(Math.max(0, t - half), data.end - 2 * half);
    show(from, from + 2 * half);
  }
  setCursor(t);
}

function onKey(event) {
  const action = {
    ArrowRight: () => (event.shiftKey ? pan(0.25) : step(1)), ArrowLeft: () => (event.shiftKey ? pan(-0.25) : step(-1)),
    Home: () => reach(moments[0]), End: () => reach(moments[moments.length - 1]),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: () => { setCursor(null); show(0, data.end); },
  }[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

// follow lets a drawing move the cursor, and zoom to what the pointer is dragged over.
function follow(root, x, width) {
  const timeOf = (event) => {
    const box = root.getBoundingClientRect();
    return x.invert(((event.clientX - box.left) / box.width) * width);
  };
  let start = null, brush = null;
  root.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType !== "touch") start = timeOf(event);
  });
  root.addEventListener("pointermove", (event) => {
    const t = timeOf(event);
    setCursor(t);
    if (start === null) return;
    if (!brush) {
      root.setPointerCapture(event.pointerId);
      brush = svg("rect", { class: "brush", y: 0, height: "100%" });
      root.append(brush);
    }
    brush.setAttribute("x", x(Math.min(start, t)));
    brush.setAttribute("width", Math.abs(x(t) - x(start)));
  });
  root.addEventListener("pointerup", (event) => {
    const from = start, dragged = brush !== null && Math.abs(x(timeOf(event)) - x(start)) > 6;
    start = null;
    brush?.remove();
    brush = null;
    if (dragged) show(Math.min(from, timeOf(event)), Math.max(from, timeOf(event)));
  });
  root.addEventListener("pointerleave", () => { if (start === null) setCursor(null); });
  root.addEventListener("dblclick", () => show(0, data.end));
  root.addEventListener("keydown", onKey);
}

const control = (label, hint, onclick) => html("button", { type: "button", title: hint, onclick }, label);
fill(byID("plots-controls"), control("Show all", "Escape or a double click does the same", () => show(0, data.end)),
  control("+", "Zoom in; drag over a plot to choose what to see", () => zoom(0.5)), control("−", "Zoom out", () => zoom(2)),
  control("←", "Earlier", () => pan(-0.5)), control("→", "Later", () => pan(0.5)));
for (const button of document.querySelectorAll("button.moment")) button.addEventListener("click", () => reach(Number(button.dataset.at)));
redrawAll();
onResize(plots, redrawAll);
for (const when of ["beforeprint", "afterprint"]) addEventListener(when, redrawAll);
