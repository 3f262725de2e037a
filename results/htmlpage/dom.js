// Building elements. Text goes in as text nodes only, so no name or value of a sweep can become markup.

const svgNamespace = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const html = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => build(document.createElementNS(svgNamespace, tag), attributes, children);
const byID = (id) => document.getElementById(id);

function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

// onResize calls back when the element's width changes.
function onResize(element, callback) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    callback();
  }).observe(element);
}

// picker is a labelled select; groups are [heading, [[value, text, title], …]].
function picker(label, groups, selected, onchange) {
  const option = ([value, text, hint]) => html("option", { value, title: hint || null, selected: value === selected }, text);
  const filled = groups.filter(([, options]) => options.length > 0);
  const items = filled.map(([heading, options]) => (filled.length > 1 ? html("optgroup", { label: heading }, options.map(option)) : options.map(option)));
  return html("label", {}, label, html("select", { "aria-label": label, onchange: (event) => onchange(event.target.value) }, items));
}

function toggle(label, pressed, onclick, hint) {
  return html("button", { type: "button", "aria-pressed": String(pressed), title: hint, onclick }, label);
}

// spaced lets long key names break after an underscore.
const spaced = (name) => name.split(/(?<=_)/).flatMap((part) => [part, html("wbr")]);

// pairs is a list of names and values; a null entry draws a rule.
function pairs(entries) {
  return html("dl", { class: "pairs" }, entries.map((e) => (e === null ? html("div", { class: "rule" }) : [html("dt", {}, spaced(e[0])), html("dd", {}, e[1])])));
}

// copyButton copies a text, or what a function returns; pages opened from disk may have no clipboard, so it falls back to a selection.
function copyButton(text) {
  const button = html("button", { type: "button", class: "copy" }, "Copy");
  const done = () => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1200);
  };
  button.addEventListener("click", () => {
    const copied = typeof text === "function" ? text() : text;
    if (navigator.clipboard) navigator.clipboard.writeText(copied).then(done, () => copyBySelection(copied, done));
    else copyBySelection(copied, done);
  });
  return button;
}

function copyBySelection(text, done) {
  const area = html("textarea", { style: "position:fixed;opacity:0" });
  area.value = text;
  document.body.append(area);
  area.select();
  if (document.execCommand("copy")) done();
  area.remove();
}
