// What the charts and the table share: the chosen rows, the pinned point, and who wants to know of a change.

// onChange calls a function when one of some kinds of things changed: "selection", "bounds", "pin", "colours" or "theme";
// tell says that one did. However much changes, a function is called at most once a frame. What registers inside of
// later waits for a frame in which nothing else changes, so that the plot follows a moving slider while further charts
// catch up.
const { onChange, tell, flush, later } = (() => {
  const listeners = [];
  const due = new Set();
  let frame = 0, late = false;
  const request = () => { if (frame === 0 && due.size > 0) frame = requestAnimationFrame(() => run(false)); };
  const run = (all) => {
    cancelAnimationFrame(frame);
    frame = 0;
    const first = listeners.filter((listener) => due.has(listener) && !listener.late);
    const calls = first.length && !all ? first : listeners.filter((listener) => due.has(listener));
    for (const listener of calls) due.delete(listener);
    for (const { call } of calls) call();
    request();
  };
  return {
    onChange(kinds, call) { listeners.push({ kinds, call, late }); },
    tell(kind) {
      for (const listener of listeners) {
        if (listener.kinds.includes(kind)) due.add(listener);
      }
      request();
    },
    // flush calls at once whoever waits, as before a page is printed.
    flush() { while (due.size > 0) run(true); },
    later(register) {
      late = true;
      register();
      late = false;
    },
  };
})();

// selection is the rows that every source asks for: each chart, and the filter of the table, is a source.
const selection = (() => {
  const sources = new Map();
  let common = null, list = null;
  const combine = () => {
    list = null;
    const sets = [...sources.values()];
    if (sets.length < 2) {
      common = sets[0] || null;
    } else {
      common = new RowSet();
      for (const row of sets[0]) {
        if (sets.every((set) => set.has(row))) common.add(row);
      }
    }
    tell("selection");
  };
  return {
    // set chooses rows for a source, and null everything. In charts a point stands for its replicates; the filter of the
    // table means each row.
    set(rows, source) {
      if (rows === null && !sources.has(source)) return;
      if (rows === null) sources.delete(source);
      else sources.set(source, new RowSet(source === "filter" || !membersOf ? rows : [...rows].flatMap(replicatesOf)));
      combine();
    },
    clear() {
      if (sources.size === 0) return;
      sources.clear();
      combine();
    },
    active: () => common !== null,
    has: (row) => common === null || common.has(row),
    // touches says whether a point, which stands for its replicates, is chosen.
    touches: (row) => common === null || (membersOf ? replicatesOf(row).some((r) => common.has(r)) : common.has(row)),
    size: () => (common === null ? report.rows : common.size),
    of: (source) => sources.get(source) || null,
    rows() {
      if (common !== null && list === null) list = new Set(common);
      return list;
    },
  };
})();

// The pinned point is the one that the details are about.
const { pinned, setPinned } = (() => {
  let row = null;
  return {
    pinned: () => row,
    setPinned(next) {
      row = next;
      tell("pin");
    },
  };
})();
