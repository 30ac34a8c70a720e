// The page on tokens: the reader's text, cut by the vocabulary that the reader chooses.

import { fitsIntoAddress, state, update } from "./address.js";
import { element, nameUnknown, piece, thousands } from "./show.js";
import { textOf } from "./tokenizer.js";

const SHOWN = 500; // pieces at first, and with each click more

const form = document.querySelector("form.lab");
const field = form.elements.text;
const status = form.querySelector("[role=status]");
const list = document.getElementById("pieces");
const more = document.getElementById("more");
const note = document.getElementById("link-note");

let worker = null; // tokenizes; made when it is needed first
let isBusy = false;
let isOutdated = false; // the text has changed while the worker was busy
let shown = SHOWN;
let characters = null; // those of the tiny GPT

async function cut() {
  if (isBusy) {
    isOutdated = true;
    return;
  }
  isBusy = true;
  if (state.vocabulary === "tinygpt") {
    try {
      show(await cutIntoCharacters(field.value));
    } catch {
      show({ error: "The characters of the tiny GPT could not be loaded." });
    }
    return;
  }
  if (!worker) {
    status.textContent = "Loading the vocabulary …";
    worker = new Worker(new URL("tokenizer-worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => show(data));
    worker.addEventListener("error", () => show({ error: "This browser cannot run the tokenizer." }));
  }
  worker.postMessage({ vocabulary: state.vocabulary, text: field.value, limit: shown });
}

async function cutIntoCharacters(text) {
  characters ??= (await (await fetch(new URL("data/tinygpt.json", import.meta.url))).json()).characters;
  const signs = Array.from(text.toWellFormed());
  const known = signs.filter((sign) => characters.includes(sign));
  const groups = known.slice(0, shown).map((sign) => ({ text: sign, ids: [characters.indexOf(sign)] }));
  const unknown = [...new Set(signs)].filter((sign) => !characters.includes(sign)).slice(0, 50);
  return { tokens: known.length, total: known.length, groups, unknown };
}

function show({ tokens, total, groups, unknown = [], error }) {
  isBusy = false;
  if (isOutdated) {
    isOutdated = false;
    cut();
    return;
  }
  if (error) {
    status.textContent = `${error} Load the page again to try once more.`;
    return;
  }
  const length = Array.from(field.value).length;
  status.textContent = `${count(length, "character")}, ${count(tokens, "token")}.`;
  list.replaceChildren(...groups.map(item));
  more.hidden = groups.length === total;
  more.textContent = `Show more tokens (${thousands(total - groups.length)} are not shown)`;
  note.replaceChildren();
  nameUnknown(note, unknown);
  if (!fitsIntoAddress(field.value)) note.append(" This text is too long for a link: the address of this page does not have it.");
}

function count(number, word) {
  return `${thousands(number)} ${word}${number === 1 ? "" : "s"}`;
}

// One sign of several tokens has all their ids, and says which bytes belong to which.
function item({ text, bytes, ids }) {
  const whole = text ?? textOf(bytes.join(""));
  const hex = bytes?.map((token) => Array.from(token, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join(" "));
  const shownPiece = whole === null ? element("code", { class: "piece" }, `bytes ${hex.join(" ")}`) : piece(whole);
  const parts = element("span", { class: "piece__ids" }, ids.join(" + "));
  if (ids.length > 1) parts.append(element("span", { class: "piece__bytes" }, `bytes ${hex.join(" + ")}`));
  return element("li", {}, shownPiece, parts);
}

form.addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("input", () => {
  shown = SHOWN;
  update({ text: field.value });
  cut();
});
form.addEventListener("change", ({ target }) => {
  if (target.name !== "vocabulary") return;
  update({ vocabulary: target.value });
  cut();
});
more.addEventListener("click", () => {
  shown += 4 * SHOWN;
  cut();
});

field.value = state.text;
form.elements.vocabulary.value = state.vocabulary;
form.hidden = false;
// The sentence of the story stands above already. Until the reader asks for something else, nothing is loaded.
if (location.search) cut();
else field.addEventListener("focus", () => { if (!list.children.length) cut(); }, { once: true });
