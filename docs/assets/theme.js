// What the page's head does: light or dark, the menu, and the search. The theme's own script, most of
// a page's weight, is loaded when somebody searches.

(() => {
"use strict";

document.documentElement.classList.replace("no-js", "js");

// ---- Light or dark -----------------------------------------------------------------------------

// As the reader's system has it, until the reader chooses.
const KEY = "course-scheme";
const system = matchMedia("(prefers-color-scheme: dark)");
const button = document.querySelector(".scheme");
let chosen = "";

function kept() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return chosen; // the browser forbids to keep it
  }
}

function showScheme() {
  const scheme = kept() || (system.matches ? "dark" : "light");
  document.body.dataset.mdColorScheme = scheme === "dark" ? "slate" : "default";
  button.setAttribute("aria-pressed", String(scheme === "dark"));
}

button.addEventListener("click", () => {
  chosen = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, chosen);
  } catch { /* then it lasts as long as the page */ }
  showScheme();
});

system.addEventListener("change", showScheme);
addEventListener("storage", showScheme); // chosen in another tab
button.hidden = false;
showScheme();

// ---- The search --------------------------------------------------------------------------------

function loadSearch() {
  const waiting = document.querySelector("script[data-src]");
  if (!waiting) return;
  const script = document.createElement("script");
  script.src = waiting.dataset.src;
  waiting.replaceWith(script);
}

function prepareSearch() {
  const form = document.forms.search;
  const field = form.query;
  // Found on paper and by the theme's styles as a dialog, and one needs a name.
  form.closest("[role=dialog]").setAttribute("aria-label", "Search");
  form.addEventListener("submit", (event) => event.preventDefault());
  if (location.protocol === "file:") {
    field.disabled = true;
    field.placeholder = "No search in files: it needs a web server";
    return;
  }
  field.addEventListener("focus", loadSearch);
  document.getElementById("__search").addEventListener("change", ({ target }) => {
    if (target.checked) field.focus();
  });
  // A single letter that is said or typed by mistake must do nothing: WCAG 2.1.4.
  addEventListener("keydown", (event) => {
    const isText = event.target.matches?.("input, textarea, [contenteditable]");
    if (!isText && "pnfs,./".includes(event.key)) event.stopImmediatePropagation();
  }, true);
}

// ---- The menu ----------------------------------------------------------------------------------

// The theme opens menu and search by labels of hidden check boxes, which no keyboard reaches.
function makeButton(label, name) {
  const box = document.getElementById(label.htmlFor);
  const opener = document.createElement("button");
  opener.type = "button";
  opener.className = label.className;
  opener.dataset.opens = box.dataset.mdToggle;
  opener.setAttribute("aria-label", name);
  opener.append(...label.childNodes);
  label.replaceWith(opener);
  const show = () => opener.setAttribute("aria-expanded", String(box.checked));
  box.addEventListener("change", show);
  show();
  opener.addEventListener("click", () => {
    box.checked = !box.checked;
    box.dispatchEvent(new Event("change"));
  });
  return opener;
}

function close(box) {
  if (!box.checked) return;
  box.checked = false;
  box.dispatchEvent(new Event("change"));
}

function prepareMenu() {
  const drawer = document.getElementById("__drawer");
  const menu = document.querySelector(".md-sidebar--primary");
  const opener = makeButton(document.querySelector(".md-header__button[for=__drawer]"), "Menu");
  makeButton(document.querySelector(".md-header__button[for=__search]"), "Search");
  drawer.addEventListener("change", () => {
    if (drawer.checked) menu.querySelector("a:not(.md-logo)").focus();
  });
  addEventListener("hashchange", () => close(drawer));
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !drawer.checked) return;
    close(drawer);
    opener.focus();
  });
}

// ---- Without a web server ----------------------------------------------------------------------

// A folder's page is named in full: no server does it.
function nameFiles() {
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.protocol === "file:" && link.pathname.endsWith("/")) link.pathname += "index.html";
  }
}

document.addEventListener("DOMContentLoaded", () => {
  prepareSearch();
  prepareMenu();
  if (location.protocol === "file:") nameFiles();
});
})();
