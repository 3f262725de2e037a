// Numbers as people read them.

const plural = (n, thing) => `${n.toLocaleString("en-US")} ${thing}${n === 1 ? "" : "s"}`;

// Formatters by the number of decimals: making one for each number would be slow.
const byDecimals = [];

function withDecimals(value, digits) {
  byDecimals[digits] ??= new Intl.NumberFormat("en-US", { maximumFractionDigits: digits });
  return byDecimals[digits].format(value);
}

// formatNumber shows up to four significant digits, with separators, or an exponent far from one.
function formatNumber(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2);
  if (Number.isInteger(value)) return withDecimals(value, 0);
  const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))));
  return withDecimals(value, digits);
}

// formatTick is short, for the labels of an axis.
function formatTick(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(0).replace("e+", "e");
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(6))}k`;
  return String(Number(value.toPrecision(6)));
}
