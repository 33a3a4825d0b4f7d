// Asks the worker for places; only the latest question is answered.
let worker = null;
let number = 0;
const waiting = new Map();

export function layout(nodes, edges, direction) {
  if (!worker) {
    worker = new Worker("/page/layout_worker.js");
    worker.onmessage = ({ data }) => { waiting.get(data.number)?.(data); waiting.delete(data.number); };
  }
  number += 1;
  return new Promise((resolve) => {
    waiting.set(number, resolve);
    worker.postMessage({ number, nodes, edges, direction });
  });
}

// A smooth line through points.
export function path(points) {
  const [first, ...rest] = points;
  let text = `M${first[0]},${first[1]}`;
  rest.forEach(([x, y], at) => {
    const next = rest[at + 1];
    if (!next) text += `L${x},${y}`;
    else text += `Q${x},${y} ${(x + next[0]) / 2},${(y + next[1]) / 2}`;
  });
  return text;
}
