"use strict";
// Everything here works on what the page holds: it loads nothing.
const GRAPH = JSON.parse(document.getElementById("data").textContent);
const TIP = document.getElementById("tip");
const BOX = document.getElementById("graph");
const COLOURS = {above: "#0072b2", below: "#d55e00", free: "#8a8a8a"};
// Pixels from one label to the next, and what a letter takes.
const STEP = 17, LETTER = 6.6;
const DETAILED = 40;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null && text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawn(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

const written = (value) => (value === null ? "" : String(Number(value.toPrecision(4))));
const cut = (text, room) => {
  const most = Math.max(3, Math.floor(room / LETTER));
  return text.length <= most ? text : `${text.slice(0, most - 1)}\u2026`;
};

// For every node its links, as [number of the link, the node at the other end].
const JOINED = GRAPH.columns.map((nodes) => nodes.map(() => []));
GRAPH.links.forEach(([layer, from, to], number) => {
  JOINED[layer][from].push([number, layer + 1, to]);
  JOINED[layer + 1][to].push([number, layer, from]);
});

// Orders: inputs as asked, every other column by the mean place of what it reads.
function places(order) {
  const nodes = GRAPH.columns[0];
  const strength = (i) => Math.max(0, ...JOINED[0][i].map(([number]) => GRAPH.links[number][4]));
  const keys = {crossings: (i) => -nodes[i].height, matter: (i) => -strength(i),
    name: (i) => nodes[i].label.toLowerCase()};
  const key = keys[order];
  const sorted = nodes.map((_, i) => i).sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a - b));
  const found = [spread(sorted)];
  GRAPH.columns.slice(1).forEach((own, at) => {
    const column = at + 1;
    const means = own.map((node, i) => {
      if (order === "crossings" || column === GRAPH.columns.length - 1) return 1 - node.height;
      const before = JOINED[column][i].filter(([, where]) => where === column - 1);
      return before.length ? before.reduce((sum, [, , from]) => sum + found[at][from], 0) / before.length : 1;
    });
    found.push(spread(own.map((_, i) => i).sort((a, b) => means[a] - means[b] || a - b)));
  });
  return found;
}

// From an order of nodes to their places between 0 (top) and 1.
function spread(sorted) {
  const place = new Array(sorted.length);
  sorted.forEach((node, rank) => { place[node] = (rank + 0.5) / sorted.length; });
  return place;
}

function draw() {
  const width = BOX.clientWidth, columns = GRAPH.columns, last = columns.length - 1;
  const narrow = width < 640;
  const longest = (nodes) => Math.max(4, ...nodes.map((node) => node.label.length)) * LETTER + 14;
  const left = Math.min(longest(columns[0]), width * (narrow ? 0.34 : 0.26));
  const right = Math.min(longest(columns[last]), width * 0.2);
  const most = Math.max(...columns.map((nodes) => nodes.length));
  const height = Math.max(160, most * STEP), top = 24;
  const at = places(document.getElementById("order").value);
  const x = (column) => left + (last ? column / last : 0) * (width - left - right);
  const y = (column, node) => top + at[column][node] * height;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height + top + 8}`, height: height + top + 8,
    role: "img", "aria-label": "graph of the network"});
  // Bundles: a link passes near the middle of all links of both of its ends.
  const middles = columns.map((nodes, column) => nodes.map((_, node) => {
    const ends = JOINED[column][node].map(([, where, other]) => y(where, other));
    return ends.length ? ends.reduce((sum, one) => sum + one, 0) / ends.length : y(column, node);
  }));
  const strong = document.getElementById("strong").checked;
  const shares = GRAPH.links.map((link) => link[4]).sort((a, b) => b - a);
  const least = strong ? shares[Math.floor((shares.length - 1) / 2)] : -1;
  const many = GRAPH.links.length > DETAILED;
  const order = GRAPH.links.map((_, number) => number).sort((a, b) => GRAPH.links[a][4] - GRAPH.links[b][4]);
  for (const number of order) {
    const [layer, from, to, weight, share] = GRAPH.links[number];
    if (weight !== null && share < least) continue;
    const [x0, y0, x1, y1] = [x(layer), y(layer, from), x(layer + 1), y(layer + 1, to)];
    const pull = many ? 0.5 : 0.15, straight = (y0 + y1) / 2;
    const middle = straight + pull * ((middles[layer][from] + middles[layer + 1][to]) / 2 - straight);
    const half = (x0 + x1) / 2, quarter = (x1 - x0) / 4;
    const path = `M${x0},${y0}C${x0 + quarter},${y0} ${half - quarter},${middle} ${half},${middle}` +
      `S${x1 - quarter},${y1} ${x1},${y1}`;
    const colour = weight === null ? COLOURS.free : weight > 0 ? COLOURS.above : COLOURS.below;
    const wide = 0.5 + share * (many ? 3 : 5), opacity = many ? 0.15 + 0.7 * share : 0.85;
    svg.append(drawn("path", {d: path, stroke: colour, "stroke-width": wide, "stroke-opacity": opacity,
      "data-link": number}));
  }
  columns.forEach((nodes, column) => {
    const named = column === 0 || column === last;
    nodes.forEach((node, i) => {
      const group = drawn("g", {class: "node", tabindex: 0, "data-column": column, "data-node": i,
        role: "button", "aria-label": node.label});
      const [cx, cy] = [x(column), y(column, i)];
      const fill = node.kind === "input" ? "#bdbdbd" : node.bias > 0 ? COLOURS.above : node.bias < 0 ? COLOURS.below : "#fff";
      const size = Math.max(3.5, Math.min(7, (0.42 * height) / nodes.length));
      if (node.kind === "linear") {
        group.append(drawn("rect", {x: cx - size, y: cy - size, width: 2 * size, height: 2 * size, fill: "#fff", stroke: "#303030"}));
      } else {
        group.append(drawn("circle", {cx, cy, r: size, fill, stroke: "#303030"}));
      }
      if (named) {
        const side = column === 0 ? -1 : 1;
        group.append(drawn("text", {x: cx + side * 11, y: cy + 4, "text-anchor": side < 0 ? "end" : "start"},
          cut(node.label, (side < 0 ? left : right) - 12)));
      }
      group.addEventListener("mouseenter", () => pick(column, i, group));
      group.addEventListener("focus", () => pick(column, i, group));
      group.addEventListener("click", () => pick(column, i, group));
      group.addEventListener("mouseleave", clear);
      group.addEventListener("blur", clear);
      svg.append(group);
    });
    const counted = nodes.filter((node) => node.kind !== "linear").length;
    const words = column === 0 ? "inputs" : column === last ? (nodes.length > 1 ? "outputs" : "output") : "neurons";
    const anchor = column === 0 ? "start" : column === last ? "end" : "middle";
    const head = column === 0 ? 2 : column === last ? width - 2 : x(column);
    svg.append(drawn("text", {x: head, y: 13, "text-anchor": anchor, class: "head"}, `${counted} ${words}`));
  });
  BOX.replaceChildren(svg);
}

function pick(column, node, group) {
  const own = GRAPH.columns[column][node];
  const joined = JOINED[column][node].map(([number, where, other]) => [GRAPH.links[number], where, other]);
  const numbers = new Set(JOINED[column][node].map(([number]) => String(number)));
  const ends = new Set([`${column},${node}`, ...joined.map(([, where, other]) => `${where},${other}`)]);
  for (const path of BOX.querySelectorAll("path")) path.classList.toggle("on", numbers.has(path.dataset.link));
  for (const each of BOX.querySelectorAll(".node")) {
    each.classList.toggle("on", ends.has(`${each.dataset.column},${each.dataset.node}`));
  }
  BOX.classList.add("picked");
  joined.sort(([a], [b]) => b[4] - a[4]);
  const lines = joined.slice(0, 12).map(([link, where, other]) =>
    `${where < column ? "from" : "to"} ${GRAPH.columns[where][other].label}${link[3] === null ? "" : `: ${written(link[3])}`}`);
  if (joined.length > 12) lines.push(`and ${joined.length - 12} more`);
  const bias = own.bias ? [`bias ${written(own.bias)}`] : [];
  TIP.textContent = [own.label, ...bias, ...lines].join("\n");
  TIP.hidden = false;
  const box = group.firstElementChild.getBoundingClientRect(), size = TIP.getBoundingClientRect();
  const beside = box.right + 12 + size.width < window.innerWidth ? box.right + 12 : box.left - 12 - size.width;
  TIP.style.left = `${Math.min(Math.max(4, beside), window.innerWidth - size.width - 4)}px`;
  TIP.style.top = `${Math.min(Math.max(4, box.top - 8), window.innerHeight - size.height - 4)}px`;
}

function clear() {
  BOX.classList.remove("picked");
  TIP.hidden = true;
}

function sortable(table) {
  const heads = [...table.querySelectorAll("thead th")];
  const keyOf = (row, column) => {
    const text = row.children[column].dataset.value ?? row.children[column].textContent.trim();
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  };
  // Numbers before words, and empty places last whichever way.
  const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : Number(a > b)) : typeof a === "number" ? -1 : 1);
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => { if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return Number(a === "") - Number(b === "");
      return down ? compare(b, a) : compare(a, b);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}

const body = document.querySelector("#links tbody");
for (const [layer, from, to, weight] of GRAPH.links) {
  if (weight === null) continue;
  const row = body.appendChild(element("tr"));
  row.append(element("td", GRAPH.columns[layer][from].label), element("td", GRAPH.columns[layer + 1][to].label),
    element("td", written(weight), {class: "number", "data-value": weight}));
}
document.querySelectorAll("table.sortable").forEach(sortable);
document.getElementById("order").addEventListener("change", draw);
document.getElementById("strong").addEventListener("change", draw);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
window.addEventListener("scroll", clear, {passive: true});
let wide = 0;
new ResizeObserver(() => {
  if (BOX.clientWidth === wide) return;
  wide = BOX.clientWidth;
  draw();
}).observe(BOX);
