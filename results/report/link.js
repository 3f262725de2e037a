// The view as the part of the address behind #, so that a link shows the same.

// boundTerm reads one bound as boundText writes it.
const boundTerm = /^`?(.+?)`? (<=|>=|<|>) (-?[\d.]+(?:e[+-]?\d+)?)$/i;

// setBounds moves the bounds to those of a text; what it does not name has none.
function setBounds(text) {
  for (const b of bounds) b.bound = null;
  for (const term of text.split(" && ")) {
    const [, name, operator, value] = boundTerm.exec(term) || [];
    const bound = bounds.find((b) => b.bound === null && isUpper(b.operator) === isUpper(operator || "<") && b.columns.some((c) => c.name === name));
    if (bound) [bound.column, bound.bound] = [columnsByName.get(name), Number(value)];
  }
}

// readLink parses the address: an object of words.
const readLink = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

// writeLink puts words into the address, and leaves out those that are null.
function writeLink(words) {
  const kept = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== null && value !== undefined));
  const hash = String(kept);
  if (location.hash.slice(1) === hash) return;
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch {
    // A page that may not change its address works all the same.
  }
}
