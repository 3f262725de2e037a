// A track: rows of states over time, with the reason at the cursor in words.

const rowHeight = 22;

function drawTrack(track, width, id) {
  const height = track.rows.length * (rowHeight + 4) + plotMargin.bottom;
  const bottom = height - plotMargin.bottom, right = width - plotMargin.right;
  const x = timeScale(width);
  const root = svg("svg", { class: "timeplot", height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${track.title} over time` });
  drawTimeAxis(root, x, width, bottom, 0);
  root.append(svg("clipPath", { id }, svg("rect", { x: plotMargin.left, y: 0, width: right - plotMargin.left, height })));
  const inside = svg("g", { "clip-path": `url(#${id})` });
  track.rows.forEach((row, n) => {
    const top = n * (rowHeight + 4) + 2;
    root.append(svg("text", { x: plotMargin.left - 7, y: top + rowHeight / 2 + 4, "text-anchor": "end" }, row.name));
    row.times.forEach((from, i) => {
      const to = i + 1 < row.times.length ? row.times[i + 1] : data.end;
      const state = data.states[row.states[i]];
      if (!state || to < view.from || from > view.to) return;
      inside.append(svg("rect", { class: "state", x: x(from).toFixed(1), y: top, width: Math.max(1, x(to) - x(from) - 0.6).toFixed(1), height: rowHeight, fill: `var(--${state.kind})` }, svg("title", {}, describe(state))));
    });
  });
  root.append(inside);
  return { root, x, bottom };
}

const describe = (state) => `${state.name.replaceAll("_", " ")}${state.meaning ? `: ${state.meaning}` : ""}`;

// stateAt is the state of a row at a time, or undefined.
const stateAt = (row, t) => data.states[row.states[atOrBefore(row.times, t)]];

function makeTrack(track, number, host) {
  const used = [...new Set(track.rows.flatMap((row) => row.states))].filter((i) => i >= 0).sort((a, b) => a - b).map((i) => data.states[i]);
  const words = html("p", { class: "now-text" }, "\u00a0");
  const place = html("div", {});
  host.append(html("section", { class: "card track" },
    html("div", { class: "card-head" }, html("h2", {}, track.title), track.note ? html("p", { class: "muted" }, track.note) : null),
    html("ul", { class: "keys" }, used.map((s) => html("li", { title: s.meaning }, html("i", { style: `background: var(--${s.kind})` }), s.name.replaceAll("_", " ")))),
    words, place));
  let now = null, x = null;
  function draw() {
    const width = Math.max(280, place.clientWidth);
    const drawn = drawTrack(track, width, `clip-track-${number}`);
    x = drawn.x;
    now = svg("line", { class: "now", y1: 0, y2: drawn.bottom, visibility: "hidden" });
    drawn.root.append(now);
    follow(drawn.root, x, width);
    replaceKeepingFocus(place, drawn.root);
    moveTo(view.cursor);
  }
  function moveTo(t) {
    placeNow(now, x, t);
    const texts = t === null ? [] : track.rows.map((row) => [row, stateAt(row, t)]).filter(([, s]) => s).map(([row, s]) => `${track.rows.length > 1 ? `${row.name}: ` : ""}${describe(s)}`);
    words.textContent = texts.join(" · ") || "\u00a0";
  }
  return { draw, moveTo, track };
}
