// Places of nodes, computed by dagre beside the page, so that it stays quick.
importScripts("/page/vendor/dagre.js");

onmessage = ({ data }) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: data.direction, nodesep: 13, ranksep: data.direction === "LR" ? 46 : 34, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of data.nodes) graph.setNode(id, { width, height });
  for (const [from, to] of data.edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width, height } = graph.graph();
  postMessage({
    number: data.number, width, height,
    places: Object.fromEntries(graph.nodes().map((id) => [id, [graph.node(id).x, graph.node(id).y]])),
    paths: graph.edges().map((edge) => [edge.v, edge.w, graph.edge(edge).points.map(({ x, y }) => [x, y])]),
  });
};
