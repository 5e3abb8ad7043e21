// The tasks of a corpus: cards that are filtered, and one task in a dialog.

const cards = [...byId("gallery").children];

function drawChecks(checks) {
  // as elements of every task they would be most of a large page
  const table = element("table");
  for (const [name, passed, value, limit] of checks) {
    const verdict = passed === null ? ["dim", "–"] : passed ? ["good", "holds"] : ["bad", "FAILS"];
    const cells = [["", name], verdict, ["n", value], ["n dim", limit && "limit " + limit]];
    table.append(element("tr", "", "", ...cells.map(([look, text]) => element("td", look, text))));
  }
  return element("div", "scroll", "", table);
}

function show() {
  const { filter, q, open } = state();
  const wanted = (q || "").toLowerCase();
  let n = 0;
  for (const card of cards) {
    const { kind, text } = card.dataset;
    card.hidden = Boolean((filter && kind !== filter) || !text.includes(wanted));
    n += !card.hidden;
  }
  byId("shown").textContent = `${n} of ${cards.length}`;
  pressFilter(filter);
  if (document.activeElement !== byId("search")) byId("search").value = q || "";
  const content = open && byId("task-" + open);
  if (content) {
    byId("detail").replaceChildren(content.content.cloneNode(true));
    // a picture is in the file once, on the card
    const drawn = cards.find((card) => card.dataset.id === open).querySelector(".thumb > img, .thumb > svg");
    if (drawn) byId("detail").querySelector(".thumb-here").append(drawn.cloneNode(true));
    const checks = byId("detail").querySelector(".checks");
    if (checks) checks.replaceWith(drawChecks(JSON.parse(checks.textContent)));
    if (!byId("dialog").open) byId("dialog").showModal();
    byId("dialog").scrollTop = 0;
  } else byId("dialog").close();
}

function step(by) {
  const shown = cards.filter((card) => !card.hidden);
  const at = shown.findIndex((card) => card.dataset.id === state().open);
  const next = shown[at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1)];
  if (next) go({ open: next.dataset.id }, true);
}

byId("gallery").addEventListener("click", (event) => {
  const card = event.target.closest(".card");
  if (!card) return;
  event.preventDefault(); // the link alone would drop the filter
  go({ open: card.dataset.id });
});
byId("dialog").addEventListener("close", () => { if (state().open) go({ open: "" }); });
listenToTools();
listenToKeys({ j: () => step(1), k: () => step(-1) });
window.addEventListener("hashchange", show);
show();
