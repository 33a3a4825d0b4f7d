// Elements and numbers. Text is only ever set as text: nothing of what clients send can become markup.
export function h(name, properties = {}, ...children) {
  const made = document.createElement(name);
  fill(made, properties, children);
  return made;
}

export function s(name, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(made, properties, children);
  return made;
}

function fill(made, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style" && typeof value === "object") for (const [name, each] of Object.entries(value)) made.style.setProperty(name, each);
    else if (key === "value" || key === "checked") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e9) return (value / 1e9).toPrecision(3) + " G";
  if (value >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (value >= 1e4) return Math.round(value / 1e3) + " k";
  return Number.isInteger(value) ? value.toLocaleString("en") : value < 10 ? String(Number(value.toPrecision(2))) : Math.round(value).toLocaleString("en");
}

export function bytes(value) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= size) return Number((value / size).toPrecision(3)) + " " + unit;
  return value + " B";
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return Number((value / 1000).toPrecision(3)) + " s";
  if (value >= 1) return Number(value.toPrecision(3)) + " ms";
  return Math.max(1, Math.round(value * 1000)) + " µs";
}

export function percent(part, whole) {
  return whole ? Number(((100 * part) / whole).toPrecision(3)) + " %" : "–";
}

export function clock(iso) {
  const found = new Date(iso);
  const today = new Date().toDateString() === found.toDateString();
  return today ? found.toLocaleTimeString() : found.toLocaleString();
}

// A bar of parts: [[value, colour, meaning], …] of a whole.
export function bar(parts, whole) {
  const shown = parts.filter(([value]) => value > 0);
  const title = shown.map(([value, , meaning]) => `${meaning}: ${count(value)}`).join("\n");
  return h("div", { class: "bar", title, role: "img", "aria-label": title },
    shown.map(([value, colour]) => h("i", { style: { width: `${(100 * value) / (whole || 1)}%`, background: colour } })));
}

export function empty(text) {
  return h("p", { class: "empty" }, text);
}

// A value of a result in its table.
export function cell(value) {
  if (value === null) return h("td", { class: "quiet" }, "NULL");
  if (typeof value === "number") return h("td", { class: "n" }, String(value));
  return h("td", {}, typeof value === "object" ? JSON.stringify(value) : value);
}
