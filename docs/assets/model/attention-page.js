// The page on attention: a walk through the mask, and the tiny GPT's look at the reader's text.

import { state, update } from "./address.js";
import { element, nameOf, nameUnknown, percent } from "./show.js";
import { loadTinyGPT } from "./tinygpt.js";

// ---- The mask: each row is a radio button, so the browser's own arrow keys walk --------------------

const table = document.querySelector("table.mask");
const rows = [...table.tBodies[0].rows];
const sentences = [...document.querySelectorAll(".mask-sentences li")];
const maskStatus = document.getElementById("mask-status");

for (const [i, row] of rows.entries()) {
  const button = element("input", { type: "radio", name: "mask-row", autocomplete: "off" });
  const label = element("label", {}, button, ...row.cells[0].childNodes);
  row.cells[0].replaceChildren(label);
  button.addEventListener("change", () => {
    for (const [j, other] of rows.entries()) other.classList.toggle("looks", i === j);
    for (const [j, sentence] of sentences.entries()) sentence.classList.toggle("looks", i === j);
    maskStatus.replaceChildren(...sentences[i].cloneNode(true).childNodes);
  });
}
maskStatus.textContent = "Choose a row and walk with the arrow keys.";

// ---- The tiny GPT ------------------------------------------------------------------------------

const form = document.querySelector("form.lab");
const field = form.elements.text;
const live = document.getElementById("looking");
const button = document.getElementById("load");
const { layer, head, row } = form.elements;
const letters = document.getElementById("letters");
const status = document.getElementById("live-status");

let model = null;
let shares = []; // of each character: [layer][head][place]
let text = []; // the characters that were read

async function load() {
  button.disabled = true;
  status.textContent = "Loading …";
  try {
    model = await loadTinyGPT();
  } catch (error) {
    button.disabled = false;
    live.hidden = false;
    status.textContent = `${error.message} Is there a network? Try again.`;
    return;
  }
  const numbers = (count) => Array.from({ length: count }, (_, i) => element("option", { value: i + 1 }, i + 1));
  layer.replaceChildren(...numbers(model.head.n_layer));
  head.replaceChildren(...numbers(model.head.n_head));
  layer.value = Math.min(state.layer, model.head.n_layer);
  head.value = Math.min(state.head, model.head.n_head);
  button.hidden = true;
  live.hidden = false;
  read();
}

// Lets the model read the text: the end of it, where it is longer than the model's context.
function read() {
  nameUnknown(document.getElementById("unknown"), model.unknown(field.value));
  const numbers = model.encode(field.value).slice(-model.blockSize);
  model.forget();
  shares = [];
  for (const number of numbers) {
    const looked = [];
    model.next(number, looked);
    shares.push(looked);
  }
  text = numbers.map((number) => model.characters[number]);
  row.max = Math.max(1, text.length);
  row.value = state.row || text.length;
  show();
}

function show() {
  const looking = Math.min(Number(row.value), text.length) - 1;
  if (looking < 0) {
    letters.replaceChildren();
    status.textContent = "There is nothing to read.";
    return;
  }
  const weights = shares[looking][layer.value - 1][head.value - 1];
  letters.replaceChildren(...text.map((character, place) => {
    const letter = element("span", { class: "letter" }, character === "\n" ? "↵" : character);
    if (place === looking) letter.classList.add("looks");
    if (place > looking) letter.classList.add("later");
    else letter.style.setProperty("--share", weights[place]);
    return letter;
  }));
  const best = Array.from(weights, (_, i) => i).sort((a, b) => weights[b] - weights[a]).slice(0, 3);
  const named = best.map((place) => `${nameOf(text[place])} (letter ${place + 1}${place === looking ? ", itself" : ""}): ${percent(weights[place])}`);
  row.setAttribute("aria-valuetext", `letter ${looking + 1}: ${nameOf(text[looking])}`);
  status.textContent = `Letter ${looking + 1}, ${nameOf(text[looking])}, looks most at ${named.join("; ")}.`;
}

form.addEventListener("submit", (event) => event.preventDefault());
button.addEventListener("click", load);
field.addEventListener("input", () => {
  update({ text: field.value, row: 0 });
  if (model) read();
});
form.addEventListener("input", ({ target }) => {
  if (target === field) return;
  update({ layer: Number(layer.value), head: Number(head.value), row: Number(row.value) });
  show();
});

field.value = state.text;
form.hidden = false;
if (location.search) load(); // a link shows what its sender saw
