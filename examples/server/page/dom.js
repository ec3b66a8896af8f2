// Making elements. All text goes in as text: nothing here, or anywhere in the page, reads markup from a string.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with attributes; `class` and `hidden` too. Children are nodes or strings; null is left out. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sets text only where it differs, so that a poll that brings nothing new changes nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const waiting = new Set();

/** Calls `work` once before the next frame, however often it is asked for. */
export function soon(work) {
  if (waiting.size === 0) {
    // No frames come while the page is hidden.
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  }
  waiting.add(work);
}

function run() {
  const all = [...waiting];
  waiting.clear();
  for (const work of all) work();
}

document.addEventListener("visibilitychange", () => waiting.size > 0 && run());

/** A button that calls `work`. */
export function button(text, work, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", work);
  return made;
}

/** A share as a percentage with three digits. */
export function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toPrecision(3)} %`;
}

/** A number with three digits. */
export function short(number) {
  if (!Number.isFinite(number)) return "–";
  return number >= 100 || Number.isInteger(number) ? Math.round(number).toLocaleString("en") : number.toPrecision(3);
}

export function duration(ms) {
  const seconds = ms / 1000;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
