// What of the graph is drawn: all of it, or the largest by a measure, and the rest folded into groups by their tables.

export const MEASURES = {
  rows: { name: "rows/s", of: (each) => each.rows_per_s ?? each.reads_per_s ?? 0 },
  time: { name: "time", of: (each) => each.busy ?? 0 },
  memory: { name: "memory", of: (each) => each.bytes },
  hits: { name: "hit rate", of: (each) => (each.kind === "view" && each.hits + each.shared_hits + each.misses ? (each.hits + each.shared_hits) / (each.hits + each.shared_hits + each.misses) : null) },
};

// Nodes and views of the twin as one list of elements with `id`, `kind`, `inputs` (ids) and `tables`.
export function elements(found) {
  const nodes = found.nodes.map((each) => ({ ...each, id: each.node, kind: each.inputs.length ? "node" : "table" }));
  const byId = new Map(nodes.map((each) => [each.id, each]));
  const tables = new Map();
  const below = (id) => {
    if (!tables.has(id)) {
      tables.set(id, new Set());
      const node = byId.get(id);
      const own = !node ? [] : node.inputs.length ? node.inputs.flatMap((each) => [...below(each)]) : [node.table];
      tables.set(id, new Set(own));
    }
    return tables.get(id);
  };
  for (const each of nodes) each.tables = [...below(each.id)].sort();
  const views = found.views.map((each) => ({ ...each, id: "view " + each.name, kind: "view", inputs: byId.has(each.node) ? [each.node] : [] }));
  return [...nodes, ...views];
}

// Without filters and projections that only one other element reads: they are steps on the way to it.
export function withoutSteps(all, chosen) {
  const users = new Map();
  for (const each of all) for (const input of each.inputs) users.set(input, (users.get(input) ?? 0) + 1);
  const byId = new Map(all.map((each) => [each.id, each]));
  const isStep = (each) => each && each.kind === "node" && /^(filter|project)$/.test(each.operation) && each.inputs.length === 1 && users.get(each.id) === 1 && !each.bytes && each.id !== chosen;
  const source = (id) => { let at = id; while (isStep(byId.get(at))) [at] = byId.get(at).inputs; return at; };
  return all.filter((each) => !isStep(each)).map((each) => ({ ...each, inputs: [...new Set(each.inputs.map(source))] }));
}

// {drawn: elements and groups, edges: [from, to]}; groups in `opened` are not folded. Where there are more than `budget`, drawn are
// tables and the largest by `value`, but none below a hundredth of the largest; `chosen` is always drawn.
export function folded(all, budget, value, chosen_id, opened) {
  const least = Math.max(...all.map(value), 0) / 100;
  const large = (each) => each.kind === "table" || each.id === chosen_id || value(each) > least;
  const rank = (each) => (each.kind === "table" ? 2 : 0) + (each.id === chosen_id ? 1 : 0);
  const largest = all.length <= budget ? all : all.filter(large).sort((one, other) => rank(other) - rank(one) || value(other) - value(one)).slice(0, budget);
  const chosen = new Set(largest.map((each) => each.id));
  const groups = new Map();
  const place = new Map();
  for (const each of all) {
    const name = `group ${each.kind} ${each.tables.join(", ")}`;
    if (chosen.has(each.id) || opened.has(name)) { place.set(each.id, each.id); continue; }
    if (!groups.has(name)) groups.set(name, { id: name, kind: "group", of: each.kind, tables: each.tables, members: [], bytes: 0, rows_per_s: 0, busy: 0 });
    const group = groups.get(name);
    group.members.push(each);
    group.bytes += each.bytes;
    group.rows_per_s += each.rows_per_s ?? 0;
    group.busy += each.busy ?? 0;
    place.set(each.id, name);
  }
  for (const [name, group] of groups) {  // a group of one is itself
    if (group.members.length > 1) continue;
    place.set(group.members[0].id, group.members[0].id);
    groups.delete(name);
  }
  const edges = new Map();
  for (const each of all) for (const input of each.inputs) {
    const [from, to] = [place.get(input), place.get(each.id)];
    if (from !== undefined && from !== to) edges.set(`${from}\n${to}`, [from, to]);
  }
  return { drawn: [...all.filter((each) => place.get(each.id) === each.id), ...groups.values()], edges: [...edges.values()] };
}

// Everything that leads to an element, or comes from it.
export function related(id, edges) {
  const found = new Set([id]);
  for (const [from, to] of [[0, 1], [1, 0]]) {
    const next = new Map();
    for (const edge of edges) { if (!next.has(edge[from])) next.set(edge[from], []); next.get(edge[from]).push(edge[to]); }
    const waiting = [id];
    while (waiting.length) for (const each of next.get(waiting.pop()) ?? []) if (!found.has(each)) { found.add(each); waiting.push(each); }
  }
  return found;
}
