// Where tokens came from, as colours, and the legend that says which is which.

import { byId, element, percent, say } from "./dom.js";

const COLOURS = 8;
const seen = new Map();
const counts = new Map();

/** The class of a source; the target's is always the first, the others get theirs as they appear. */
export function colour(source) {
  if (!seen.has("target")) seen.set("target", 0);
  if (!seen.has(source)) seen.set(source, seen.size);
  const number = seen.get(source);
  return `s${number < COLOURS ? number : 1 + ((number - 1) % (COLOURS - 1))}`;
}

export function count(source) {
  counts.set(source, (counts.get(source) ?? 0) + 1);
}

export function uncount(source) {
  const left = counts.get(source) - 1;
  if (left > 0) counts.set(source, left);
  else counts.delete(source);
}

export function forget() {
  counts.clear();
  legend();
}

/** Brings the legend up to date. */
export function legend() {
  const list = byId("legend");
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const known = new Map([...list.children].map((item) => [item.dataset.source, item]));
  for (const [source, item] of known) if (!counts.has(source)) item.remove();
  for (const [source, count] of counts) {
    let item = known.get(source);
    if (item === undefined) {
      const swatch = element("span", { class: `swatch token ${colour(source)}`, "aria-hidden": "true" }, "ab");
      item = element("li", { "data-source": source }, swatch, ` ${source} `, element("span", { class: "dim" }));
      list.append(item);
    }
    say(item.lastChild, `${count} (${percent(count / total)})`);
  }
}
