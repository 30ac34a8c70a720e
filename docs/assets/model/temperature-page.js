// The page on temperature: recorded probabilities to draw from, a recorded tree to walk, and the tiny GPT that writes.

import { state, update } from "./address.js";
import { dice, draw, probabilities } from "./sampling.js";
import { bar, element, nameUnknown, percent, piece, thousands } from "./show.js";
import { loadTinyGPT } from "./tinygpt.js";

const LISTED = 12; // tokens in the table; all others are one row
const MOST_DRAWS = 100_000;
const get = (id) => document.getElementById(id);

// ---- One temperature for the whole page ----------------------------------------------------------

const temperatures = [get("t"), get("t-live")];

function showTemperature() {
  for (const slider of temperatures) {
    slider.value = state.t;
    get(`${slider.id}-shown`).textContent = state.t;
  }
}

for (const slider of temperatures) {
  slider.addEventListener("input", () => {
    update({ t: Number(slider.value), draws: 0, written: 0 });
    showTemperature();
    showDraws();
    showTree();
  });
}

// ---- Drawing the next token ----------------------------------------------------------------------

let recorded = null;
const lab = get("turn-lab");
const rows = get("draw-table").tBodies[0];
const fullCities = () => new Map(recorded.cities.filter(({ pieces }) => pieces.length === 1).map(({ pieces, right }) => [pieces[0], right]));

// All tokens of the chosen prompt: those that were recorded one by one, then the others in groups.
function distribution() {
  const { shown, rest } = recorded.prompts[Math.min(state.prompt, recorded.prompts.length) - 1];
  const scores = [...shown.map(([, score]) => score), ...rest.map(([, score]) => score)];
  const counts = [...shown.map(() => 1), ...rest.map(([count]) => count)];
  return { texts: shown.map(([text]) => text), counts, shares: probabilities(scores, { t: state.t, topK: state.top_k, counts }) };
}

function showDraws() {
  if (!recorded) return;
  const { texts, counts, shares } = distribution();
  const drawn = new Uint32Array(shares.length);
  const random = dice(state.seed);
  let last = -1;
  for (let i = 0; i < state.draws; i++) drawn[(last = draw(shares, random))]++;

  const sum = (values, from) => values.slice(from).reduce((a, b) => a + b, 0);
  const cities = state.prompt === 2 ? fullCities() : new Map();
  const row = (name, share, times) => element("tr", {},
    element("th", { scope: "row" }, ...name),
    element("td", {}, bar(share)), element("td", {}, percent(share)), element("td", {}, state.draws ? thousands(times) : ""));
  rows.replaceChildren(
    ...texts.slice(0, LISTED).map((text, i) => row([piece(text), ...verdict(cities.get(text))], shares[i], drawn[i])),
    row([`one of ${thousands(sum(counts, LISTED))} others`], sum(shares, LISTED), sum(drawn, LISTED)),
  );
  get("draw-status").replaceChildren(...toldDraws(texts, counts, shares, last));
}

function verdict(right) {
  if (right === undefined) return [];
  const word = right ? "right" : "wrong";
  return [" ", element("span", { class: `verdict verdict--${word}` }, word)];
}

function toldDraws(texts, counts, shares, last) {
  if (!state.draws) return ["Nothing is drawn yet."];
  const name = last < texts.length ? piece(texts[last]) : `one of ${thousands(counts[last])} rare tokens`;
  return [`${thousands(state.draws)} drawn with seed ${state.seed}. The last one: `, name, ` (${percent(shares[last])}).`];
}

function drawMore(count) {
  update({ draws: Math.min(MOST_DRAWS, state.draws + count) });
  showDraws();
}

get("draw-1").addEventListener("click", () => drawMore(1));
get("draw-100").addEventListener("click", () => drawMore(100));
get("draw-0").addEventListener("click", () => { update({ draws: 0 }); showDraws(); });
lab.addEventListener("submit", (event) => event.preventDefault());
lab.addEventListener("change", ({ target }) => {
  if (target.name === "prompt") update({ prompt: Number(target.value), draws: 0 });
  else if (target.id === "top-k") update({ top_k: readWhole(target, 1, 1000, 0), draws: 0, written: 0 });
  else if (target.id === "seed") update({ seed: readWhole(target, 0, 4294967295, 1), draws: 0, written: 0 });
  else return;
  showFields();
  showDraws();
  showTree();
});

// What is no such number becomes the usual one.
function readWhole(input, least, most, usual) {
  const value = Number(input.value);
  return input.value !== "" && Number.isInteger(value) && value >= least && value <= most ? value : usual;
}

function showFields() {
  lab.elements.prompt.value = state.prompt;
  get("top-k").value = state.top_k || "";
  get("seed").value = state.seed;
}

// ---- The story goes on ---------------------------------------------------------------------------

// The way so far: the nodes that were taken, as the address has them ("2-0-0"); what does not exist is left out.
function walked() {
  const way = [];
  let choices = recorded.tree.next;
  for (const place of state.path ? state.path.split("-").map(Number) : []) {
    const node = choices[place];
    if (!node?.next) break;
    way.push({ place, node });
    choices = node.next;
  }
  return { way, choices };
}

const go = (way) => { update({ path: way.map(({ place }) => place).join("-") }); showTree(); };

function showTree() {
  if (!recorded) return;
  const { way, choices } = walked();
  const told = way.map(({ node }) => node.text).join("");
  get("so-far").replaceChildren(recorded.tree.prompt, element("strong", {}, told), choices.length ? " …" : "");
  get("choices").replaceChildren(...choices.map((node, place) => choice(node, () => go([...way, { place, node }]))));
  for (const id of ["tree-draw", "tree-likeliest"]) get(id).disabled = choices.length === 0;
  for (const id of ["tree-back", "tree-start"]) get(id).disabled = way.length === 0;
  const probability = way.reduce((product, { node }) => product * node.probability, 1);
  get("tree-status").textContent = way.length === 0 ? "" : choices.length
    ? `So far, the model finds this way ${percent(probability)} likely.`
    : `${/[.!?]\s*$|\n/.test(told) ? "The sentence is over." : "Here the recording ends."} ${judge(told)}`;
}

function choice(node, take) {
  const label = [piece(node.text), " ", percent(node.probability)];
  if (!node.next) return element("li", { class: "choice" }, ...label);
  const button = element("button", { type: "button", class: "lab__button" }, ...label);
  button.addEventListener("click", () => { take(); get("tree-draw").focus({ preventScroll: true }); });
  return element("li", { class: "choice" }, button);
}

// Is the first city of the text one on the Elbe? The page knows. The model does not.
function judge(told) {
  const named = recorded.cities.filter(({ city }) => told.includes(city)).sort((a, b) => told.indexOf(a.city) - told.indexOf(b.city));
  if (named.length === 0) return "None of our cities is in it. Look it up: is it right? The model does not know.";
  const { city, right } = named[0];
  return right
    ? `${city} is right: the Elbe flows through it. The model does not know that it was lucky.`
    : `${city} is wrong: the Elbe does not flow through it. The model did not notice.`;
}

function drawBranch() {
  const { way, choices } = walked();
  const open = choices.map((node, place) => ({ place, node })).filter(({ node }) => node.next);
  const shares = probabilities(open.map(({ node }) => Math.log(node.probability)), { t: state.t, topK: state.top_k });
  const random = dice(state.seed);
  for (let i = 0; i < way.length; i++) random(); // the same seed goes the same way
  go([...way, open[draw(shares, random)]]);
}

get("tree-lab").addEventListener("submit", (event) => event.preventDefault());
get("tree-draw").addEventListener("click", drawBranch);
get("tree-likeliest").addEventListener("click", () => {
  const { way, choices } = walked();
  const best = choices.reduce((best, node, place) => (node.next && (!best || node.probability > best.node.probability) ? { place, node } : best), null);
  go([...way, best]);
});
get("tree-back").addEventListener("click", () => go(walked().way.slice(0, -1)));
get("tree-start").addEventListener("click", () => go([]));

// ---- Shakespeare ---------------------------------------------------------------------------------

const AT_A_TIME = 500; // characters that one click writes
const SLICE = 25; // milliseconds of computing, then the browser may answer the reader

const field = get("text");
const output = get("written");
const writeStatus = get("write-status");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let model = null;
let isStopped = true;

// Lets the browser do what waits. (A timer of 0 would wait 4 ms and more.)
const channel = new MessageChannel();
const breathe = () => new Promise((resolve) => {
  channel.port1.onmessage = resolve;
  channel.port2.postMessage(null);
});

async function write(length) {
  isStopped = false;
  get("write").hidden = true;
  get("stop").hidden = false;
  output.hidden = false;
  try {
    writeStatus.textContent = "Loading …";
    model ??= await loadTinyGPT();
    await writeWith(model, length);
  } catch (error) {
    writeStatus.textContent = `${error.message} Is there a network? Try again.`;
  }
  isStopped = true;
  get("write").hidden = false;
  get("write").textContent = "Write again";
  get("stop").hidden = true;
}

async function writeWith(model, length) {
  const begin = model.encode(field.value);
  if (begin.length === 0) begin.push(model.characters.indexOf("\n"));
  const random = dice(state.seed);
  const start = performance.now();
  let slice = start;
  let scores;
  const pause = async () => {
    if (performance.now() - slice <= SLICE) return;
    await breathe();
    slice = performance.now();
  };
  model.forget();
  let text = begin.map((number) => model.characters[number]).join("");
  for (const number of begin) {
    scores = model.next(number);
    await pause();
  }
  output.textContent = text;
  writeStatus.textContent = "It writes …";
  let written = 0;
  while (written < length && !isStopped) {
    const number = draw(probabilities(scores, { t: state.t, topK: state.top_k }), random);
    text += model.characters[number];
    written++;
    for (const earlier of model.makeRoom()) {
      model.next(earlier);
      await pause();
    }
    scores = model.next(number);
    if (performance.now() - slice > SLICE) {
      if (!calm.matches) output.textContent = text;
      await breathe();
      slice = performance.now();
    }
  }
  output.textContent = text;
  const seconds = (performance.now() - start) / 1000;
  writeStatus.textContent = `${written} letters with seed ${state.seed}, ${Math.round(written / seconds)} in a second.`;
  update({ written });
}

get("write-lab").addEventListener("submit", (event) => event.preventDefault());
get("write").addEventListener("click", () => write(AT_A_TIME));
get("stop").addEventListener("click", () => { isStopped = true; });
field.addEventListener("input", () => {
  update({ text: field.value, written: 0 });
  nameUnknownInField();
});

async function nameUnknownInField() {
  characters ??= (await (await fetch(new URL("data/tinygpt.json", import.meta.url))).json()).characters;
  nameUnknown(get("unknown"), [...new Set(field.value)].filter((character) => !characters.includes(character)));
}
let characters = null;

// ---- Start ---------------------------------------------------------------------------------------

field.value = state.text;
showTemperature();
showFields();
for (const form of document.querySelectorAll("form.lab")) form.hidden = false;

// The recorded probabilities come when the reader comes near to where they are needed.
async function loadRecorded() {
  try {
    recorded = await (await fetch(new URL("data/recorded.json", import.meta.url))).json();
    showDraws();
    showTree();
  } catch {
    get("draw-status").textContent = "The recorded probabilities could not be loaded. Is there a network? Load the page again.";
  }
}

const near = new IntersectionObserver((entries) => {
  if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
  near.disconnect();
  if (!recorded) loadRecorded();
}, { rootMargin: "500px" });
for (const form of [lab, get("tree-lab")]) near.observe(form);

if (location.search) { // a link shows what its sender saw
  loadRecorded();
  nameUnknownInField();
  if (state.written) write(state.written);
}
