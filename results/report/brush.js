// Choosing points by a rectangle in the plot.

const smallestBrush = 5; // pixels; less is a click

// makeBrush lets people draw a rectangle over the element of the plot. drawn returns the plot as it is, onClick is called
// with the pixel of a click. It returns { draw, get, set, clear, dragging }; rectangles are [x0, x1, y0, y1] in figures.
function makeBrush(element, drawn, onClick) {
  let area = null, start = null, moved = false;

  const pixel = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const inside = ([x, y]) => {
    const { width, height } = drawn();
    return [Math.min(width - margin.right, Math.max(margin.left, x)), Math.min(height - margin.bottom, Math.max(margin.top, y))];
  };
  const draw = () => {
    const { brush, x, y } = drawn();
    brush.setAttribute("visibility", area ? "visible" : "hidden");
    if (!area) return;
    const [left, right] = [x(area[0]), x(area[1])], [low, high] = [y(area[2]), y(area[3])];
    for (const [name, value] of Object.entries({ x: left, y: high, width: right - left, height: low - high })) brush.setAttribute(name, value);
  };
  const choose = () => selection.set(area ? rowsWithin(drawn(), area) : null, "plot");
  const set = (next) => {
    area = next;
    draw();
    choose();
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch" || event.target.closest(".tooltip")) return;
    [start, moved] = [inside(pixel(event)), false];
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!start) return;
    const end = inside(pixel(event));
    if (!moved && Math.hypot(end[0] - start[0], end[1] - start[1]) < smallestBrush) return;
    moved = true;
    const { x, y } = drawn();
    area = [x.invert(Math.min(start[0], end[0])), x.invert(Math.max(start[0], end[0])), y.invert(Math.max(start[1], end[1])), y.invert(Math.min(start[1], end[1]))];
    draw();
  });
  element.addEventListener("pointerup", () => {
    if (start && moved) choose();
    start = null;
  });
  element.addEventListener("pointercancel", () => { start = null; });
  element.addEventListener("click", (event) => {
    if (!moved) onClick(pixel(event));
    moved = false;
  });
  return { draw, set, get: () => area, clear: () => set(null), dragging: () => start !== null && moved };
}

// rowsWithin lists the points that show inside a rectangle.
function rowsWithin(drawn, [x0, x1, y0, y1]) {
  const { rows, x, y } = pixelsOf(drawn);
  const [left, right, low, high] = [drawn.x(x0), drawn.x(x1), drawn.y(y0), drawn.y(y1)];
  return rows.filter((_, i) => x[i] >= left && x[i] <= right && y[i] <= low && y[i] >= high);
}
