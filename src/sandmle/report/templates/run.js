// The episodes of a run: a list that is filtered, and one of them turn by turn.

const rows = JSON.parse(byId("rows").textContent);
const PAGE = 200; // rows that are drawn at once; more when the end is reached
let found = []; // indices of the rows that the filters let through
let drawn = 0;
const words = new Map(); // index to everything that was said, in small letters

function episode(index) {
  return JSON.parse(byId("episode-" + index).textContent);
}

function said(index) {
  if (!words.has(index)) {
    const { facts, reason, error, turns } = episode(index);
    const texts = turns.flatMap((t) => [t.think, t.code, t.reply, t.seen, t.stdout, t.stderr]);
    const row = rows[index];
    const all = [row.id, row.title, row.stop, ...row.flags, ...Object.values(facts), reason, error, ...texts];
    words.set(index, all.join("\n").toLowerCase());
  }
  return words.get(index);
}

function filtered({ filter, task, q, order }) {
  const wanted = (q || "").toLowerCase();
  const kept = [...rows.keys()].filter((index) => {
    const row = rows[index];
    if (filter && !row.marks.includes(filter)) return false;
    if (task && row.task !== task) return false;
    return !wanted || said(index).includes(wanted);
  });
  const value = (index) => rows[index][order] ?? -Infinity;
  return order ? kept.sort((a, b) => value(b) - value(a)) : kept;
}

// --- the list -------------------------------------------------------------------------------------

function drawRow(index) {
  const row = rows[index];
  const head = element("span", "head", "", element("span", "", row.title), element("b", "", number(row.reward)));
  const tail = element("span", "tail");
  if (row.medal) tail.append(chip(row.medal, row.medal));
  else if (row.marks.includes("failed")) tail.append(chip(row.stop, "bad"));
  else if (row.status !== "ok") tail.append(chip(row.status, "bad"));
  if (row.marks.includes("timeout")) tail.append(chip("timed out", "warn"));
  if (row.marks.includes("reverted")) tail.append(chip("had better", "warn"));
  for (const flag of row.flags) tail.append(chip(flag, "warn"));
  const turns = row.turns + (row.turns === 1 ? " turn" : " turns");
  tail.append(element("span", "", `${row.place} · ${turns}, ${number(row.seconds)} s`));
  const button = element("button", "row", "", head, tail);
  button.dataset.index = index;
  button.title = row.id;
  return element("li", "", "", button);
}

function drawMore() {
  const list = byId("list");
  list.querySelector(".more")?.remove();
  list.append(...found.slice(drawn, drawn + PAGE).map(drawRow));
  drawn = Math.min(drawn + PAGE, found.length);
  if (drawn < found.length) {
    const more = element("button", "row", `${found.length - drawn} more`);
    more.addEventListener("click", () => { drawMore(); point(); });
    list.append(element("li", "more", "", more));
  }
}

function drawList() {
  const list = byId("list");
  list.replaceChildren();
  drawn = 0;
  if (found.length) drawMore();
  else list.append(element("li", "empty", "No episode is like that."));
  byId("shown").textContent = `${found.length} of ${rows.length}`;
}

// --- one episode ----------------------------------------------------------------------------------

function drawParts(parts) {
  const table = element("table");
  for (const { name, value, weight } of parts) {
    const cells = [name, number(value), "× " + number(weight), number(value * weight)];
    const looks = ["", "n", "n dim", "n"];
    table.append(element("tr", "", "", ...cells.map((cell, n) => element("td", looks[n], cell))));
  }
  return table;
}

function drawFacts(facts) {
  const list = element("dl", "facts");
  for (const [name, value] of Object.entries(facts)) list.append(element("dt", "", name), element("dd", "", value));
  return list;
}

function folded(title, ...inside) {
  return element("details", "", "", element("summary", "", title), ...inside);
}

function shape(name, attributes, title = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (title) made.append(shape("title", {}));
  if (title) made.firstChild.textContent = title;
  return made;
}

function drawLine({ levels, turns }) {
  const width = 520;
  const svg = shape("svg", { viewBox: `-48 0 ${width + 96} 62`, class: "path", role: "img", "aria-label": "hidden score after each turn" });
  svg.append(shape("line", { x1: 0, x2: width, y1: 36, y2: 36, class: "axis" }));
  levels.forEach(([name, level, place], n) => {
    svg.append(shape("line", { x1: place * width, x2: place * width, y1: 26, y2: 46, class: "level " + name }));
    const label = shape("text", { x: place * width, y: n % 2 ? 58 : 20, class: "small", "text-anchor": "middle" });
    label.textContent = `${name} ${number(level)}`;
    svg.append(label);
  });
  turns.forEach(([turn, score, place], n) => {
    const last = n === turns.length - 1;
    const title = `after turn ${turn}: ${number(score)}`;
    svg.append(shape("circle", { cx: place * width, cy: 36, r: last ? 7 : 5, class: last ? "rung" : "rung early" }, title));
  });
  return svg;
}

// programs of a search: from left to right as they were written, each below what it came from
function drawTree(turns) {
  const depth = [];
  turns.forEach((turn, n) => {
    const above = (turn.parents || []).filter((parent) => parent < n).map((parent) => depth[parent] + 1);
    depth.push(Math.max(0, ...above));
  });
  const gap = 30, drop = 34;
  const width = Math.max(turns.length * gap, 10 * gap), height = (Math.max(...depth) + 1) * drop;
  const at = (n) => [gap / 2 + n * gap, drop / 2 + depth[n] * drop];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "tree", role: "img", "aria-label": "the search, program by program" });
  svg.style.maxWidth = width + "px";
  turns.forEach((turn, n) => {
    for (const parent of (turn.parents || []).filter((one) => one < n)) {
      const [[x1, y1], [x2, y2]] = [at(parent), at(n)];
      svg.append(shape("line", { x1, y1, x2, y2, class: "axis" }));
    }
  });
  turns.forEach((turn, n) => {
    const [cx, cy] = at(n);
    const told = turn.score === null ? "no score" : "hidden score " + number(turn.score);
    const look = turn.fault ? "faulty" : turn.medal || "rung";
    const node = shape("circle", { cx, cy, r: 9, class: "node " + look }, `turn ${n + 1}: ${turn.node || "no program"}, ${told}`);
    node.addEventListener("click", () => byId("turn-" + n)?.scrollIntoView({ block: "start" }));
    const label = shape("text", { x: cx, y: cy + 3.5, class: "small", "text-anchor": "middle" });
    label.textContent = n + 1;
    svg.append(node, label);
  });
  return svg;
}

function drawTurn(turn, place) {
  const bad = { error: "bad", timeout: "warn", oom: "warn", killed: "warn", infra: "bad", none: "bad" };
  const told = { code: "not run", submit: "submits", info: "asks", none: "no action", ok: "ran", error: "failed", timeout: "timed out",
    oom: "out of memory", infra: "sandbox failed" };
  const head = element("h4", "", "Turn " + (place + 1));
  head.append(chip(told[turn.status] || turn.status, bad[turn.status] || "good"));
  if (turn.exit) head.append(chip("exit " + turn.exit, "bad"));
  if (turn.medal) head.append(chip(turn.medal, turn.medal));
  const notes = [`model ${number(turn.model_s)} s`, `run ${number(turn.run_s)} s`];
  if (turn.tokens !== null) notes.push(turn.tokens + " tokens");
  if (turn.score !== null) notes.push("hidden score " + number(turn.score));
  else if (turn.grade && turn.grade !== "missing") notes.push("hidden grade: " + turn.grade.replace("_", " "));
  head.append(element("span", "dim", notes.join(" · ")));
  const made = element("section", "turn", "", head);
  made.id = "turn-" + place;
  if (turn.evicted) made.append(element("p", "dim", `${turn.evicted} earlier turns were no longer in the conversation.`));
  if (turn.node) made.append(element("p", "dim", turn.node));
  if (turn.fault) made.append(element("p", "bad", turn.fault));
  if (turn.think) made.append(element("div", "think", turn.think));
  if (turn.code) made.append(highlight(turn.code));
  if (turn.reply) {
    const reply = element("pre", "", turn.reply);
    made.append(turn.code || turn.think ? folded("the whole reply, as it was written", reply) : reply);
  }
  if (turn.seen) made.append(element("div", "label", "what it was shown"), element("pre", "out", turn.seen));
  if (turn.stdout) made.append(folded("all that it printed", element("pre", "out", turn.stdout)));
  if (turn.stderr) made.append(folded("all errors that it printed", element("pre", "err", turn.stderr)));
  return made;
}

function drawEpisode(index) {
  const row = rows[index];
  const one = episode(index);
  const back = element("button", "back", "← all episodes");
  back.addEventListener("click", () => go({ open: "" }));
  const chips = element("p", "", "", chip(row.stop, row.marks.includes("failed") ? "bad" : ""), " ");
  chips.append(row.status === "ok" ? chip("score " + number(row.score)) : chip(row.status.replace("_", " "), "bad"), " ");
  if (row.medal) chips.append(chip(row.medal, row.medal), " ");
  chips.append(chip(row.reward === null ? "no reward" : "reward " + number(row.reward), "good"), " ");
  for (const flag of row.flags) chips.append(chip(flag, "warn"), " ");
  const made = [back, element("h3", "", row.title), element("p", "mono dim", row.id), chips];
  if (one.error) made.push(element("p", "alarm", one.error));
  if (one.masked) made.push(element("p", "warn", "Left out of training: " + one.masked.replaceAll("_", " ")));
  if (one.reason) made.push(element("p", "bad", one.reason));
  if (one.graded) made.push(element("p", "dim", one.graded));
  if (one.line) made.push(drawLine(one.line));
  if (one.turns.some((turn) => turn.parents !== null)) made.push(drawTree(one.turns));
  if (one.parts.length) made.push(folded("reward, part by part", drawParts(one.parts)));
  made.push(folded("about this episode", drawFacts(one.facts)));
  made.push(...one.turns.map(drawTurn));
  byId("detail").replaceChildren(...made);
  byId("detail").dataset.index = index;
}

// --- from the address to the page -----------------------------------------------------------------

let before = {};

function point() {
  const open = String(rows.findIndex((row) => row.id === before.open));
  for (const button of byId("list").querySelectorAll("button.row")) {
    const here = button.dataset.index === open;
    button.setAttribute("aria-current", here);
    if (here) button.scrollIntoView({ block: "nearest" });
  }
}

function show() {
  const now = state();
  const names = ["filter", "task", "q", "order"];
  if (names.some((name) => now[name] !== before[name]) || !drawn) {
    found = filtered(now);
    pressFilter(now.filter);
    for (const [id, key] of [["search", "q"], ["task", "task"], ["order", "order"]]) {
      if (document.activeElement !== byId(id)) byId(id).value = now[key] || "";
    }
    drawList();
  }
  const index = rows.findIndex((row) => row.id === now.open);
  const changed = now.open !== before.open;
  before = now;
  byId("split").classList.toggle("opened", index >= 0);
  if (index < 0 && found.length && !byId("detail").dataset.index) drawEpisode(found[0]); // for a wide window
  if (changed && index >= 0) {
    drawEpisode(index);
    while (found.includes(index) && found.indexOf(index) >= drawn) drawMore();
    byId("split").scrollIntoView({ block: "start" });
  }
  point();
}

function step(by) {
  const at = found.findIndex((index) => rows[index].id === state().open);
  const next = found[at < 0 ? 0 : Math.min(Math.max(at + by, 0), found.length - 1)];
  if (next !== undefined) go({ open: rows[next].id }, true);
}

function stepTurn(by) {
  const turns = [...byId("detail").querySelectorAll(".turn")];
  const tops = turns.map((turn) => turn.getBoundingClientRect().top);
  const next = by > 0 ? tops.findIndex((top) => top > 40) : tops.findLastIndex((top) => top < -10);
  turns[next]?.scrollIntoView({ block: "start" });
}

byId("list").addEventListener("click", (event) => {
  const button = event.target.closest("button.row");
  if (button?.dataset.index) go({ open: rows[button.dataset.index].id });
});
byId("task").addEventListener("change", (event) => go({ task: event.target.value }));
byId("order").addEventListener("change", (event) => go({ order: event.target.value }));
listenToTools();
listenToKeys({
  j: () => step(1), k: () => step(-1), n: () => stepTurn(1), p: () => stepTurn(-1),
  Escape: () => go({ open: "" }),
});
window.addEventListener("hashchange", show);
show();
