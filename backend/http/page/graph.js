// The live dataflow graph: tables, nodes, views, coloured by a measure; the small ones fold.
import { count, bytes, empty, h, percent, s } from "./dom.js";
import { details } from "./graph_details.js";
import { elements, folded, MEASURES, related, withoutSteps } from "./fold.js";
import { layout, path } from "./layout.js";

export const title = "Graph";
export const twin = "/v1/graph";
export const whole = true;
const [WIDTH, HEIGHT] = [178, 42];

let state;

export function open(main, argument) {
  state = { measure: "rows", budget: 120, opened: new Set(), chosen: argument ? "view " + argument : null, centre: Boolean(argument), before: new Map(), zoom: null, shape: "", all: [], nodes: new Map() };
  const pick = h("select", { "aria-label": "Colour by", onchange: (event) => { state.measure = event.target.value; paint(); } },
    Object.entries(MEASURES).map(([name, each]) => h("option", { value: name }, `colour: ${each.name}`)));
  const detail = h("select", { "aria-label": "How many", onchange: (event) => { state.budget = Number(event.target.value); draw(); } },
    [[40, "the 40 largest"], [120, "the 120 largest"], [400, "the 400 largest"], [1e9, "all"]].map(([value, text]) => h("option", { value, selected: value === 120 }, text)));
  const steps = h("label", { class: "quiet" }, h("input", { type: "checkbox", onchange: (event) => { state.plain = event.target.checked; draw(); } }), " filters and projections");
  state.search = h("input", { type: "search", placeholder: "search ( / )", "aria-label": "Search the graph", oninput: mark });
  state.said = h("span", { class: "quiet", role: "status" });
  state.svg = s("svg", { role: "group", "aria-label": "Dataflow graph" });
  state.world = state.svg.appendChild(s("g"));
  state.panel = h("aside", { hidden: true, "aria-label": "Details" });
  state.legend = h("div", { class: "legend" });
  state.empty = h("div", { style: { position: "absolute", inset: "25% 0 auto 0" } });
  main.append(h("div", { class: "tools bartop" }, state.search, pick, detail, steps, h("button", { onclick: fit, title: "key 0" }, "Fit"), state.said),
    h("div", { class: "graph" }, state.svg, state.panel, state.legend, state.empty));
  moves(state.svg);
}

export function show(found) {
  const now = performance.now();
  const before = state.before;
  state.all = elements(found);
  for (const each of state.all) if (each.kind === "view") {
    const reads = each.hits + each.shared_hits + each.misses;
    const earlier = before.get(each.id);
    each.reads_per_s = earlier && reads >= earlier[0] ? (1000 * (reads - earlier[0])) / Math.max(now - earlier[1], 1) : 0;
    if (!earlier || earlier[0] !== reads || now - earlier[1] > 8000) before.set(each.id, [reads, now]);
  }
  state.empty.replaceChildren(...(state.all.length ? [] : [empty("No view yet. Send a query twice, from any MySQL client, and its view appears here.")]));
  draw();
}

async function draw() {
  const value = (each) => MEASURES[state.measure].of(each) ?? 0;
  const { drawn, edges } = folded(state.plain ? state.all : withoutSteps(state.all, state.chosen), state.budget, value, state.chosen, state.opened);
  state.drawn = drawn;
  state.edges = edges;
  const shape = JSON.stringify([drawn.map((each) => each.id).sort(), edges.map(String).sort()]);
  if (shape !== state.shape) {
    const mine = (state.shape = shape);
    const placed = await layout(drawn.map((each) => ({ id: each.id, width: WIDTH, height: HEIGHT })), edges, "LR");
    if (mine !== state.shape) return;
    build(placed);
  }
  paint();
}

function build(placed) {
  const lines = placed.paths.map(([from, to, points]) => s("path", { class: "edge", d: path(points), "data-from": from, "data-to": to }));
  state.nodes = new Map(state.drawn.map((each) => [each.id, nodeOf(each, placed.places[each.id])]));
  state.lines = lines;
  state.places = placed.places;
  const was = state.extent;
  state.extent = [placed.width, placed.height];
  state.world.replaceChildren(...lines, ...state.nodes.values());
  if (state.centre && state.places[state.chosen]) { state.centre = false; centreOn(state.chosen); } else if (!state.zoom || !was || Math.abs(was[0] - placed.width) + Math.abs(was[1] - placed.height) > 400) fit();
}

function nodeOf(each, [x, y]) {
  const act = () => choose(each.id);
  return s("g", { class: `node ${each.kind}`, transform: `translate(${x - WIDTH / 2},${y - HEIGHT / 2})`, tabindex: 0, role: "button", onclick: act, onkeydown: (event) => { if (event.key === "Enter") act(); } },
    s("title"), s("rect", { class: "body", width: WIDTH, height: HEIGHT }), s("text", { x: 10, y: 18 }), s("text", { class: "sub", x: 10, y: 33 }));
}

export function name(each) {
  if (each.kind === "group") return `${each.members.length} small ${each.of}s`;
  if (each.kind === "table") return each.table;
  if (each.kind === "node") return each.operation;
  return each.named_views[0] ?? each.queries[0] ?? `view of ${each.tables.map((table) => table.split(".").pop()).join(", ")}`;
}

const clipped = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function below(each) {
  const rows = each.kind === "view" ? `${count(each.reads_per_s)} reads/s` : `${count(each.rows_per_s)} rows/s`;
  if (each.kind === "group") return clipped(each.tables.join(", "), 30);
  const value = { rows, time: `${percent(each.busy ?? 0, 1)} of a core`, memory: bytes(each.bytes), hits: each.kind === "view" ? `${percent(MEASURES.hits.of(each), 1)} hits` : "" }[state.measure];
  return [value, each.kind === "view" || each.bytes ? `${count(each.keys)} key${each.keys === 1 ? "" : "s"}` : ""].filter(Boolean).join(" · ");
}

// Writing to the page is what takes long: only what has changed is written.
function change(place, name, value, write) {
  place.shown ??= {};
  if (place.shown[name] === value) return;
  place.shown[name] = value;
  write(value);
}

function paint() {
  if (!state.drawn) return;
  const measure = MEASURES[state.measure];
  const highest = Math.max(...state.drawn.map((each) => measure.of(each) ?? 0), 0);
  for (const each of state.drawn) {
    const place = state.nodes.get(each.id);
    if (!place) continue;
    const value = measure.of(each);
    // Roots show small differences among many small values.
    const part = !value || !highest ? 0 : state.measure === "hits" ? value : Math.sqrt(value / highest);
    const [hint, body, first, second] = place.children;
    const shown = name(each);
    change(place, "name", shown, () => { first.textContent = clipped(shown, 22); hint.textContent = shown; });
    change(place, "below", below(each), (text) => { second.textContent = text; });
    change(place, "fill", `color-mix(in oklab, var(--accent) ${Math.round(88 * part)}%, var(--surface))`, (fill) => { body.style.fill = fill; });
    change(place, "dark", part > 0.62, (on) => place.classList.toggle("dark", on));
  }
  const ends = { rows: ["0", `${count(highest)} rows/s`], time: ["0", percent(highest, 1)], memory: ["0", bytes(highest)], hits: ["0 %", "100 %"] }[state.measure];
  state.legend.replaceChildren(h("span", {}, measure.name), ends[0], h("i", { style: { background: "linear-gradient(90deg, var(--surface), var(--accent))", border: "1px solid var(--line)" } }), ends[1]);
  const counted = (kind) => { const number = state.all.filter((each) => each.kind === kind).length; return `${count(number)} ${kind}${number === 1 ? "" : "s"}`; };
  state.said.textContent = ["table", "node", "view"].map(counted).join(" → ");
  mark();
}

// The chosen element with all that leads to it and comes from it, or what was searched for, stands out.
function mark() {
  if (!state.drawn) return;
  const text = state.search.value.toLowerCase();
  const lit = state.chosen && state.nodes.has(state.chosen) ? related(state.chosen, state.edges) : null;
  state.world.classList.toggle("lit", Boolean(lit || text));
  for (const each of state.drawn) {
    const place = state.nodes.get(each.id);
    const found = text && (name(each) + " " + each.tables.join(" ") + " " + (each.queries ?? []).join(" ")).toLowerCase().includes(text);
    if (place) change(place, "on", Boolean(lit?.has(each.id) || found), (on) => place.classList.toggle("on", on));
    if (place) change(place, "chosen", each.id === state.chosen, (on) => place.classList.toggle("chosen", on));
  }
  for (const line of state.lines ?? []) change(line, "on", Boolean(lit?.has(line.dataset.from) && lit.has(line.dataset.to)), (on) => line.classList.toggle("on", on));
  const chosen = state.all.find((each) => each.id === state.chosen);
  state.panel.hidden = !chosen;
  const told = chosen ? chosen.id + JSON.stringify(chosen) : null;
  if (chosen && state.told !== told) {
    const at = state.panel.scrollTop;
    state.panel.replaceChildren(details(chosen, state.all, choose, () => choose(null)));
    state.panel.scrollTop = at;
  }
  state.told = told;
}

function choose(id) {
  const group = state.drawn.find((each) => each.id === id && each.kind === "group");
  if (group) { state.opened.add(id); return draw(); }
  state.chosen = state.chosen === id ? null : id;
  if (state.chosen && !state.nodes.has(state.chosen)) { state.centre = true; return draw(); }
  mark();
}

// --- looking around

function transform() {
  const { x, y, k } = state.zoom;
  state.world.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
}

function fit() {
  const [width, height] = state.extent ?? [1, 1];
  const box = state.svg.getBoundingClientRect();
  const room = box.height - 60;  // above the legend
  const k = Math.min(1.1, Math.max(0.3, Math.min(box.width / width, room / height)));
  state.zoom = { k, x: (box.width - k * width) / 2, y: (room - k * height) / 2 };
  transform();
}

function centreOn(id) {
  const box = state.svg.getBoundingClientRect();
  const [x, y] = state.places[id];
  state.zoom = { k: 1, x: box.width / 2 - x, y: box.height / 2 - y };
  transform();
}

function zoomAt(x, y, factor) {
  const k = Math.min(3, Math.max(0.04, state.zoom.k * factor));
  const by = k / state.zoom.k;
  state.zoom = { k, x: x - (x - state.zoom.x) * by, y: y - (y - state.zoom.y) * by };
  transform();
}

function moves(svg) {
  let from = null;
  svg.addEventListener("wheel", (event) => { event.preventDefault(); if (state.zoom) zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY / 400)); }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { if (event.target === svg && state.zoom) { from = [event.clientX - state.zoom.x, event.clientY - state.zoom.y]; svg.setPointerCapture(event.pointerId); svg.classList.add("dragging"); } });
  svg.addEventListener("pointermove", (event) => { if (from) { state.zoom.x = event.clientX - from[0]; state.zoom.y = event.clientY - from[1]; transform(); } });
  svg.addEventListener("pointerup", () => { from = null; svg.classList.remove("dragging"); });
}

export function key(event) {
  if (!state.zoom) return;
  const box = state.svg.getBoundingClientRect();
  const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
  if (step) { state.zoom.x += step[0]; state.zoom.y += step[1]; transform(); event.preventDefault(); }
  else if (event.key === "+" || event.key === "=") zoomAt(box.width / 2, box.height / 2, 1.25);
  else if (event.key === "-") zoomAt(box.width / 2, box.height / 2, 0.8);
  else if (event.key === "0") fit();
  else if (event.key === "Escape" && state.chosen) choose(null);
}

export function restyle() {
  paint();
}
