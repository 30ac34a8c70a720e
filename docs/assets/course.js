// The reader's own values, the copy buttons, and the links to share. Nothing here asks a server for anything.

(() => {
"use strict";

const dialog = document.querySelector("dialog.values");
if (!dialog) return; // the page for what is not found

// ---- What the page says ------------------------------------------------------------------------

const announcer = document.createElement("p");
announcer.className = "copy-status reader-only";
announcer.setAttribute("role", "status");
document.body.append(announcer);

let forget;
let takeBack = () => {};

// Says a message to a screen reader, and shows it where it is more than a reader sees anyway.
function say(message, seen, undo = () => {}) {
  clearTimeout(forget);
  takeBack();
  takeBack = undo;
  announcer.textContent = message;
  announcer.classList.toggle("reader-only", !seen);
  whenSeen((part) => {
    if (part) announcer.style.top = `${scrollY + part.bottom - announcer.offsetHeight - 16}px`;
  });
  forget = setTimeout(() => {
    undo();
    announcer.textContent = "";
    announcer.classList.add("reader-only");
  }, seen ? 8000 : 2500);
}

// A frame on another page may be higher than the screen, and its middle far from where the reader is.
// So what appears there gets its place from the part of the frame that can be seen.
const isFrame = document.querySelector(".embed__source") !== null;

function whenSeen(then) {
  if (!isFrame) {
    then(null);
    return;
  }
  new IntersectionObserver(([{ intersectionRect }], observer) => {
    observer.disconnect();
    then(intersectionRect);
  }).observe(document.documentElement);
}

// ---- The reader's own values -------------------------------------------------------------------

// A login and a project are kept for good, under their names; job numbers for the visit, each under
// its scene or page and name: "2/job1", "waiting/job1". Where the browser forbids to keep them, they last as long as the page.
const KEY = "course-values";
const own = { localStorage: new Map(), sessionStorage: new Map() };
const kindOf = (name) => name.includes("/") ? "sessionStorage" : "localStorage";

// What is kept is checked as what is typed: it may come from anywhere.
function load() {
  for (const kind of Object.keys(own)) {
    try {
      const kept = Object.entries(JSON.parse(window[kind].getItem(KEY)) ?? {});
      own[kind] = new Map(kept.filter(([name, value]) => kindOf(name) === kind && typeof value === "string" && !whyNot(name, value)));
    } catch { /* forbidden, or nothing that we wrote */ }
  }
}

// Keeps a value, or removes it where it is empty. Says whether the browser allows it.
function keep(name, value) {
  const kind = kindOf(name);
  own[kind].set(name, value);
  if (!value) own[kind].delete(name);
  try {
    if (own[kind].size) window[kind].setItem(KEY, JSON.stringify(Object.fromEntries(own[kind])));
    else window[kind].removeItem(KEY);
    return true;
  } catch {
    return false;
  }
}

function forgetAll() {
  for (const kind of Object.keys(own)) for (const name of [...own[kind].keys()]) keep(name, "");
}

// Why a text is not such a value, in a sentence for the reader; empty where it is one.
function whyNot(name, text) {
  if (name === "LOGIN") {
    if (text.includes("@")) return "Only what stands before the @: your login, not your mail address.";
    if (/^\d+$/.test(text)) return "A login is not only digits. Is this your matriculation number?";
    if (!/^[a-z][a-z0-9_-]{0,31}$/.test(text)) {
      return "A login starts with a letter and has only letters a to z, digits, - and _, at most 32 of them.";
    }
  } else if (name === "ACCOUNT") {
    if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(text)) {
      return "A project has only letters a to z, digits, - and _, at most 64 of them.";
    }
  } else if (!/^[\w-]+\/job\d+$/.test(name) || !/^[1-9]\d{0,9}$/.test(text)) {
    return "A job number has up to 10 digits. You can also paste the whole line that has it.";
  }
  return "";
}

// Each place on the page that shows a value, with its name and the text that it has without a reader.
const places = [...document.querySelectorAll(".value")].map((element) => ({
  element, name: fullName(element), told: element.textContent,
}));

function fullName(element) {
  const name = element.dataset.value;
  return /^job\d/.test(name) ? `${element.closest("[data-scene]").dataset.scene}/${name}` : name;
}

const valueOf = (name) => own[kindOf(name)].get(name);
const isMissing = ({ name }) => !valueOf(name);

function show(fill = valueOf) {
  for (const { element, name, told } of places) {
    element.textContent = fill(name) ?? told;
    element.classList.toggle("value--own", Boolean(fill(name)));
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.setAttribute("aria-label", `Copy ${button.dataset.name}: ${textFor(button)}`);
  }
}

// ---- Entering them -----------------------------------------------------------------------------

const form = dialog.querySelector("form");
const reader = [form.elements.LOGIN, form.elements.ACCOUNT];

function complain(input, why) {
  document.getElementById(input.getAttribute("aria-describedby")).textContent = why;
  input.setAttribute("aria-invalid", String(Boolean(why)));
}

function ask(reason = "") {
  dialog.querySelector(".values__reason").textContent = reason;
  for (const input of reader) {
    input.value = valueOf(input.name) ?? "";
    complain(input, "");
  }
  whenSeen((part) => {
    if (part) dialog.style.top = `${scrollY + part.top + 16}px`;
    dialog.showModal();
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  for (const input of reader) {
    input.value = input.value.trim().toLowerCase();
    complain(input, input.value && whyNot(input.name, input.value));
  }
  const wrong = reader.find((input) => input.getAttribute("aria-invalid") === "true");
  if (wrong) {
    wrong.focus();
    return;
  }
  const kept = reader.map((input) => keep(input.name, input.value));
  finish(kept.includes(false) ? "Filled in, on this page only: your browser does not let it keep anything." : "Saved in this browser.");
});

function finish(message) {
  show();
  showJobs();
  dialog.close();
  say(message, true);
}

dialog.querySelector(".values-cancel").addEventListener("click", () => dialog.close());
dialog.querySelector(".values-remove").addEventListener("click", () => {
  forgetAll();
  finish("Forgotten: your login, your project and your job numbers.");
});

for (const button of document.querySelectorAll(".values-open")) {
  button.hidden = false;
  button.addEventListener("click", () => ask());
}

// A placeholder of the reader's opens the same dialog. It stays text that can be selected.
for (const { element, name } of places.filter(({ name }) => reader.some((input) => input.name === name))) {
  element.setAttribute("role", "button");
  element.setAttribute("aria-haspopup", "dialog");
  element.tabIndex = 0;
  element.addEventListener("click", () => ask());
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    ask();
  });
}

// ---- Job numbers -------------------------------------------------------------------------------

const jobs = [...document.querySelectorAll(".terminal__jobs input")];

function showJob(input) {
  input.value = valueOf(fullName(input)) ?? "";
  complain(input, "");
}

const showJobs = () => jobs.forEach(showJob);

// The number alone, or the line that the program printed: "Submitted batch job 1234570".
function readJob(input, isDone) {
  const name = fullName(input);
  const line = input.value.match(/\bjob\s*:?\s*(\d+)/);
  if (line) input.value = line[1];
  const number = input.value.trim();
  const why = number && whyNot(name, number);
  if (why && !isDone) return; // it is still being typed
  complain(input, why);
  if (why) return;
  keep(name, number);
  show();
  for (const other of jobs) if (other !== input && fullName(other) === name) showJob(other);
}

for (const field of document.querySelectorAll(".terminal__jobs")) field.hidden = false;
for (const input of jobs) {
  input.addEventListener("input", () => readJob(input, false));
  input.addEventListener("change", () => readJob(input, true));
}

// ---- Copying -----------------------------------------------------------------------------------

// What a button copies stands beside it: a command, or a link, of which it takes the full address.
const sourceOf = (button) => button.parentElement.querySelector("code, a");

function textFor(button) {
  const source = button.matches("a") ? button : sourceOf(button);
  return source.matches("a") ? addressOf(source) : source.textContent;
}

// Without what somebody has put behind a question mark.
function addressOf(link) {
  const address = new URL(link.href);
  address.search = "";
  return address.href;
}

// Where there is no clipboard (plain http, file://) or it is forbidden (a frame), the browser copies the
// selection. If that fails as well, the text stays selected, ready to be copied by hand.
function copySelection(source, text) {
  const exactly = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  getSelection().selectAllChildren(source);
  document.addEventListener("copy", exactly);
  const done = document.execCommand("copy");
  document.removeEventListener("copy", exactly);
  if (done) getSelection().removeAllRanges();
  return done;
}

async function write(source, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(source, text);
  }
}

async function copy(button) {
  const source = sourceOf(button);
  const missing = places.filter((place) => source.contains(place.element) && isMissing(place));
  if (missing.some(({ name }) => name === "LOGIN")) {
    ask("Your login belongs into this command. Enter it, then copy.");
    return;
  }
  const text = textFor(button);
  const done = await write(source, text);
  const reset = () => {
    button.textContent = "Copy";
    button.classList.remove("copy--said");
  };
  const told = missing.find(({ name }) => name.includes("/"));
  const whose = told && /^\d+\//.test(told.name) ? "the number in the story" : "the example's number";
  if (!done) say("The browser does not let this page copy. Select it and copy by hand.", true, reset);
  else if (told) say(`Copied: ${text} (${told.told} is ${whose}. Enter yours in the field for it.)`, true, reset);
  else say(`Copied: ${text}`, false, reset);
  button.textContent = done ? "Copied" : "Failed";
  button.classList.add("copy--said");
}

for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

// ---- Addresses ---------------------------------------------------------------------------------

// The site's own address, as far as only the browser knows it.
for (const element of document.querySelectorAll("[data-path]")) {
  element.textContent = new URL(element.dataset.path, location.href.split(/[?#]/)[0]).href;
}

for (const link of document.querySelectorAll("a.share")) {
  link.addEventListener("click", async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window was asked for
    if (link.pathname !== location.pathname) event.preventDefault(); // in a frame: stay
    const done = await write(link, addressOf(link));
    const message = done ? "Copied:" : "The browser does not let this page copy. The address is";
    say(`${message} ${addressOf(link)}`, true);
  });
}

// ---- Start -------------------------------------------------------------------------------------

load();
show();
showJobs();
addEventListener("storage", () => { load(); show(); showJobs(); }); // changed in another tab
addEventListener("pageshow", (event) => { if (event.persisted) { load(); show(); showJobs(); } }); // back from another page
addEventListener("beforeprint", () => show(() => undefined)); // what is printed is for everybody
addEventListener("afterprint", () => show());
})();
