// The tasks of a corpus: cards that are filtered, and one task in a dialog.

const cards = [...byId("gallery").children];

async function unpack(packed) {
  // as elements, the details of every task would be most of a large page, and of the time it takes
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(text).text();
}

async function openTask(id) {
  // markup of our own, in which the words of a task were escaped when the page was written
  const made = element("template");
  made.innerHTML = await unpack(byId("task-" + id).textContent);
  if (state().open !== id) return; // another one was asked for in the meantime
  byId("detail").replaceChildren(made.content);
  // a picture is in the file once, on the card
  const drawn = cards.find((card) => card.dataset.id === id).querySelector(".thumb > img, .thumb > svg");
  if (drawn) byId("detail").querySelector(".thumb-here").append(drawn.cloneNode(true));
  if (!byId("dialog").open) byId("dialog").showModal();
  byId("dialog").scrollTop = 0;
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
  if (open && byId("task-" + open)) openTask(open);
  else byId("dialog").close();
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
