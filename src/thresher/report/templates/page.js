"use strict";
// Everything here works on what the page holds: it loads nothing.
const DATA = JSON.parse(document.getElementById("data").textContent);
const TIP = document.getElementById("tip");
const DETAILS = document.getElementById("details");

// Viridis at nine places; between them colours are mixed.
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
  [92, 200, 99], [170, 220, 50], [253, 231, 37]];

function colour(share) {
  const place = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  return VIRIDIS[low].map((part, i) => Math.round(part + (place - low) * (VIRIDIS[low + 1][i] - part)));
}

function textOn(background) {
  const linear = background.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null && text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function written(value) {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value)) return value.length ? value.map(written).join("; ") : "nothing";
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(5)));
  return String(value);
}

// The numbers of the cells at one place, in a few lines.
function described(grid, method, cells) {
  const first = cells[0];
  const lines = [`${method.title}: m = ${first.m}, s = ${first.s}`];
  for (const quantity of grid.quantities) {
    const values = cells.map((cell) => cell.result[quantity.name]).filter((value) => typeof value === "number");
    if (!values.length) continue;
    const shown = (value) => (quantity.factor * value).toFixed(2);
    const spread = values.length > 1 ? `, standard deviation ${shown(deviation(values))}` : "";
    lines.push(`${quantity.title}: ${shown(mean(values))}${spread}`);
  }
  lines.push(`nonzeros: ${cells.map((cell) => written(cell.result.nonzeros)).join(", ")}`);
  lines.push(`seeds: ${cells.map((cell) => cell.seed).join(", ")}`);
  return lines.join("\n");
}

function showTip(target, text) {
  TIP.textContent = text;
  TIP.hidden = false;
  const box = target.getBoundingClientRect();
  const own = TIP.getBoundingClientRect();
  const left = Math.min(Math.max(4, box.left), window.innerWidth - own.width - 4);
  const above = box.top - own.height - 6;
  TIP.style.left = `${left}px`;
  TIP.style.top = `${above > 0 ? above : box.bottom + 6}px`;
}

function hideTip() { TIP.hidden = true; }

function openDetails(cells) {
  hideTip();
  document.getElementById("details-title").textContent = cells[0].label.replace(/, seed=.*/, "");
  const names = (part) => [...new Set(cells.flatMap((cell) => Object.keys(cell[part] || {})))];
  const rows = [["status", (cell) => cell.status], ["error", (cell) => cell.error],
    ...["result", "configuration", "environment"].flatMap((part) =>
      names(part).map((name) => [name === "status" ? "stopped" : name, (cell) => (cell[part] || {})[name]])),
    ["thresher", (cell) => cell.version]];
  const table = element("table");
  const head = table.appendChild(element("thead")).appendChild(element("tr"));
  head.append(element("th", ""), ...cells.map((cell) => element("th", `seed ${cell.seed}`, {scope: "col"})));
  const body = table.appendChild(element("tbody"));
  for (const [name, value] of rows) {
    // A cell that went well has no error; a setting that is null means something.
    if (cells.every((cell) => value(cell) === undefined || (name === "error" && value(cell) === null))) continue;
    const row = body.appendChild(element("tr"));
    row.append(element("th", name, {scope: "row"}), ...cells.map((cell) => element("td", written(value(cell)))));
  }
  const scroll = element("div", null, {class: "scroll"});
  scroll.append(table);
  document.getElementById("details-body").replaceChildren(scroll);
  DETAILS.showModal();
}

function panel(grid, method, cells, quantity) {
  const made = element("div", null, {class: "panel"});
  made.append(element("h4", method.title));
  const table = made.appendChild(element("table"));
  const budgets = [...new Set(cells.map((cell) => cell.s))].sort((a, b) => a - b);
  const widths = [...new Set(cells.map((cell) => cell.m))].sort((a, b) => b - a);
  const body = table.appendChild(element("tbody"));
  for (const m of widths) {
    const row = body.appendChild(element("tr"));
    row.append(element("th", `m ${m}`, {scope: "row"}));
    for (const s of budgets) {
      const here = cells.filter((cell) => cell.m === m && cell.s === s && cell.method === method.name &&
        typeof cell.result[quantity.name] === "number");
      const place = row.appendChild(element("td"));
      if (!here.length) { place.className = "none"; continue; }
      const value = quantity.factor * mean(here.map((cell) => cell.result[quantity.name]));
      const background = colour((value - quantity.low) / (quantity.high - quantity.low));
      const digits = Math.abs(value) < 10 ? quantity.digits : 0;
      const text = described(grid, method, here);
      const button = element("button", value.toFixed(digits), {type: "button", "aria-label": text});
      button.style.background = `rgb(${background})`;
      button.style.color = textOn(background);
      button.addEventListener("mouseenter", () => showTip(button, text));
      button.addEventListener("focus", () => showTip(button, text));
      button.addEventListener("mouseleave", hideTip);
      button.addEventListener("blur", hideTip);
      button.addEventListener("click", () => openDetails(here));
      place.append(button);
    }
  }
  const foot = table.appendChild(element("tfoot")).appendChild(element("tr"));
  foot.append(element("th", "s"), ...budgets.map((s) => element("th", s, {scope: "col"})));
  return made;
}

function explore(section) {
  const {cells, heatmaps} = DATA[section.dataset.experiment];
  for (const box of section.querySelectorAll(".explore")) {
    const grid = heatmaps[Number(box.dataset.grid)];
    const chosen = cells.filter((cell) => cell.part === grid.part);
    const select = box.querySelector("select");
    const draw = () => {
      const quantity = grid.quantities[Number(select.value)];
      const panels = grid.methods.map((method) => panel(grid, method, chosen, quantity));
      box.querySelector(".panels").replaceChildren(...panels);
    };
    select.addEventListener("change", draw);
    draw();
  }
}

function sortable(table) {
  const heads = [...table.querySelectorAll("thead th")];
  const keyOf = (row, column) => {
    const place = row.children[column];
    const text = place.dataset.value ?? place.textContent.trim();
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  };
  // Numbers before words, and empty places last whichever way.
  const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : Number(a > b)) : typeof a === "number" ? -1 : 1);
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return Number(a === "") - Number(b === "");
      return down ? compare(b, a) : compare(a, b);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}

for (const section of document.querySelectorAll("section[data-experiment]")) {
  explore(section);
  const {cells} = DATA[section.dataset.experiment];
  for (const table of section.querySelectorAll("table.cells")) {
    sortable(table);
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button.open");
      if (button) openDetails([cells[Number(button.closest("tr").dataset.cell)]]);
    });
  }
}
document.getElementById("close").addEventListener("click", () => DETAILS.close());
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
window.addEventListener("scroll", hideTip, {passive: true});
