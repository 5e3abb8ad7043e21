"use strict";
// What both pages share. The state of a page is what stands behind the # of its address: the
// filter, the words looked for, what is open. So a view can be kept, sent, and gone back to.
// Text of agents and tasks only ever becomes textContent.

const byId = (id) => document.getElementById(id);

function state() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function go(changes, replace = false) {
  const next = Object.entries({ ...state(), ...changes }).filter(([, value]) => value);
  const hash = "#" + new URLSearchParams(next);
  if (replace) location.replace(hash); // each letter of a search is no step to go back to
  else location.hash = hash;
}

function element(name, look = "", text = "", ...inside) {
  const made = document.createElement(name);
  if (look) made.className = look;
  if (text) made.textContent = text;
  made.append(...inside);
  return made;
}

function chip(text, look = "") {
  return element("span", "chip " + look, text);
}

function number(value) {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(3)));
}

// --- filters, search, keys ------------------------------------------------------------------------

function pressFilter(chosen) {
  for (const button of byId("filters").querySelectorAll("button")) {
    const on = button.dataset.filter === (chosen || "");
    button.classList.toggle("on", on);
    button.setAttribute("aria-pressed", on);
  }
}

function listenToTools() {
  byId("filters").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) go({ filter: button.dataset.filter });
  });
  let waiting = 0;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => go({ q: event.target.value }, true), 150);
  });
}

function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const known = { "/": () => byId("search").focus(), "?": () => byId("help").showModal(), ...actions };
    if (known[event.key]) {
      event.preventDefault();
      known[event.key]();
    }
  });
}

function listenToDialogs() {
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const root = document.documentElement.style;
    root.colorScheme = (root.colorScheme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || "close" in event.target.dataset) dialog.close();
    });
  }
}

listenToDialogs();
