// What `inspect` says of the loaded pair: what the files are, and each rule with what came of it.

import { list } from "./answer.js";
import { read } from "./api.js";
import { button, byId, element, short } from "./dom.js";

/** What the report shown is of. */
let shown = null;
let current = null;
let asking = false;

/** A poll said what is loaded. */
export function loaded({ model, speculation }) {
  current = JSON.stringify([model?.id, model?.draft, speculation?.requested]);
  if (document.body.dataset.view === "compatibility" && current !== shown) show();
}

export async function show() {
  if (asking || (shown !== null && shown === current)) return;
  asking = true;
  const of = current;
  const place = byId("report");
  if (place.childElementCount === 0) place.append(element("p", { class: "dim" }, "reading"));
  try {
    place.replaceChildren(...report(await read("inspect")));
  } catch (error) {
    const text = error.message || "The report cannot be shown.";
    place.replaceChildren(element("div", { class: "error", role: "alert" }, element("p", {}, text), button("Try again", again)));
  }
  // A report that failed is asked for again when another pair is loaded, not with each poll.
  shown = of;
  asking = false;
}

/** Reads the report anew, at once or when it is looked at. */
export function again() {
  shown = null;
  if (document.body.dataset.view === "compatibility") show();
}

function report(all) {
  return [verdict(all), sides(all.target, all.draft), memory(all.memory), checks(all.checks ?? [])].filter(Boolean);
}

function verdict(all) {
  const methods = list(all.effective);
  const words = {
    works: methods === "" ? "Works, without speculation" : `Works with ${methods}`,
    incompatible: "Does not work",
    broken: "A file is broken or no model",
  };
  const asked = `asked for: ${list(all.requested) || "nothing"}`;
  return element(
    "p",
    { class: `verdict ${all.verdict === "works" ? "good" : "bad"}`, dir: "auto" },
    element("strong", {}, words[all.verdict] ?? String(all.verdict)),
    ` (${[all.reason, asked].filter(Boolean).join("; ")})`,
  );
}

const ROWS = [
  ["Name", (it) => it.name],
  ["File", (it) => it.path],
  ["Kind", (it) => it.kind],
  ["Architecture", (it) => it.architecture],
  ["Parameters", (it) => it.parameters && rounded(it.parameters, ["", " thousand", " million", " billion"])],
  ["Weights", (it) => it.weight_bytes && `${bytes(it.weight_bytes)}, ${it.quantization}`],
  ["Layers", layers],
  ["Heads that predict", (it) => it.mtp_layers && `${it.mtp_layers}${it.mtp_heads ? "" : ", not in the file"}`],
  ["Reads layers of its target", (it) => it.target_layers?.length && it.target_layers.join(", ")],
  ["Width of its target", (it) => it.target_width],
  ["Experts", (it) => it.experts && `${it.experts_used} of ${it.experts}`],
  ["Trained for", (it) => it.trained_context && `${short(it.trained_context)} tokens`],
  ["Tokenizer", tokenizer],
  ["Chat template", (it) => it.kind && (it.chat_template ? "yes" : "no")],
  ["Broken", (it) => it.defects?.length && it.defects.map(({ place, why }) => `${place}: ${why}`).join("; ")],
  ["Unreadable", (it) => it.error],
];

function sides(target, draft) {
  const both = [target, draft].filter(Boolean);
  const head = element("tr", {}, element("td"), ...["Target", "Draft"].slice(0, both.length).map((name) => element("th", { scope: "col" }, name)));
  const rows = ROWS.map(([name, value]) => [name, both.map((side) => value(side))])
    .filter(([, values]) => values.some((value) => value))
    .map(([name, values]) =>
      element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", { dir: "auto" }, String(value || "–")))),
    );
  return scrolled("What the files are", element("table", { class: "sides" }, head, ...rows));
}

function layers(it) {
  if (!it.layers) return null;
  const counts = new Map();
  for (const kind of it.layer_kinds ?? []) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  return `${it.layers} of width ${it.width}${kinds === "" ? "" : ` (${kinds})`}`;
}

function tokenizer({ tokenizer: it }) {
  if (!it) return null;
  return `${it.model}${it.pre ? ` (${it.pre})` : ""}, ${short(it.size)} tokens${it.add_bos ? ", adds BOS" : ""}`;
}

function memory(it) {
  if (!it) return null;
  const parts = [
    ["weights", it.target_weights, it.draft_weights],
    ["caches", it.target_cache, it.draft_cache],
  ].map(([name, target, draft]) => `${name} ${bytes(target)}${draft > 0 ? ` + ${bytes(draft)}` : ""}`);
  return element("p", {}, element("strong", {}, "Memory: "), `about ${bytes(it.total)}: ${parts.join(", ")}`);
}

const OUTCOMES = { impossible: "✗ fails", risky: "! risky", wasteful: "~ wasteful" };

/** Rules that do not hold come first. */
function checks(all) {
  const failed = all.filter(({ passed }) => !passed);
  const held = all.filter(({ passed }) => passed);
  const rows = [...failed, ...held].map((check) =>
    element(
      "tr",
      { class: check.passed ? "good" : check.severity },
      element("td", { class: "outcome" }, check.passed ? "✓ holds" : (OUTCOMES[check.severity] ?? check.severity)),
      element("td", {}, element("code", {}, check.code)),
      element("td", { dir: "auto" }, check.message, compared(check), cure(check)),
    ),
  );
  const head = element("tr", {}, ...["Outcome", "Rule", "What it asks"].map((name) => element("th", { scope: "col" }, name)));
  const title = failed.length === 0 ? "Rules: all hold" : `Rules: ${failed.length} of ${all.length} do not hold`;
  return scrolled(title, element("table", { class: "checks" }, head, ...rows));
}

function compared({ target, draft }) {
  const parts = [target && `target ${target}`, draft && `draft ${draft}`].filter(Boolean);
  return parts.length > 0 ? element("div", { class: "dim" }, parts.join(", ")) : null;
}

function cure({ passed, cure }) {
  return passed || !cure ? null : element("div", {}, element("strong", {}, "Cure: "), cure);
}

/** Wide tables scroll by themselves, so that the page does not. */
function scrolled(title, table) {
  return element("div", { class: "wide-table", tabindex: "0", role: "group", "aria-label": title }, element("h3", {}, title), table);
}

function rounded(count, units) {
  let unit = 0;
  while (count >= 1000 && unit + 1 < units.length) {
    count /= 1000;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toPrecision(3)}${units[unit]}`;
}

const bytes = (count) => rounded(count, [" B", " kB", " MB", " GB"]);
