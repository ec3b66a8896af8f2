// Small plots: bars, and a line over the last minutes. Colours come from the style sheet.

import { element, percent, shape, short } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 120;
/** Where the plot itself lies; the rest is for words. */
const BOX = { left: 34, right: 314, top: 8, bottom: 102 };

const down = (share) => BOX.bottom - share * (BOX.bottom - BOX.top);

/** A bar for each position of a draft: how much of what was drafted there was accepted. */
export function bars(svg, drafted, accepted) {
  const frame = axes(1, (share) => `${share * 100} %`);
  const width = (BOX.right - BOX.left) / Math.max(4, drafted.length);
  const every = Math.ceil(drafted.length / 16);
  const said = [];
  drafted.forEach((count, at) => {
    if (count === 0) return;
    const share = Math.min(1, (accepted[at] ?? 0) / count);
    const x = BOX.left + at * width;
    const words = `position ${at + 1}: ${percent(share)} of ${short(count)}`;
    const box = { x: x + width * 0.12, width: width * 0.76, y: down(share), height: BOX.bottom - down(share) };
    frame.push(shape("rect", { class: "bar", rx: 1, ...box }, shape("title", {}, words)));
    if (at % every === 0) frame.push(label(x + width / 2, HEIGHT - 6, String(at + 1), "middle"));
    said.push(words);
  });
  show(svg, frame, said.length > 0 ? `Share of drafted tokens accepted: ${said.join("; ")}` : null);
}

/**
 * A line through `points` ({ at, value }, times in ms, value null where there is nothing to say) up to `now`, and a
 * dashed one at `baseline`. A dot marks a value without neighbours; `marks` are times at which something happened.
 */
export function line(svg, points, { now, span, baseline = null, marks = [], unit }) {
  const values = points.map(({ value }) => value).filter((value) => value !== null);
  const most = above(Math.max(...values, (baseline ?? 0) * 1.05, 0));
  const frame = axes(most, short);
  const across = (at) => BOX.right - ((now - at) / span) * (BOX.right - BOX.left);
  for (const at of marks) {
    const x = across(at);
    frame.push(shape("line", { class: "event", x1: x, x2: x, y1: BOX.top, y2: BOX.bottom }));
  }
  if (baseline !== null) {
    const y = down(baseline / most);
    frame.push(shape("line", { class: "baseline", x1: BOX.left, x2: BOX.right, y1: y, y2: y }));
    frame.push(label(BOX.right, y - 3, `plain ${short(baseline)}`, "end"));
  }
  let path = "";
  let before = null;
  points.forEach(({ at, value }, index) => {
    if (value !== null) {
      const x = across(at).toFixed(1);
      const y = down(value / most).toFixed(1);
      path += `${before === null ? "M" : "L"}${x} ${y}`;
      const alone = before === null && (points[index + 1]?.value ?? null) === null;
      if (alone) frame.push(shape("circle", { class: "dot", cx: x, cy: y, r: 2 }));
    }
    before = value;
  });
  frame.push(shape("path", { class: "line", d: path }));
  frame.push(label(BOX.left, HEIGHT - 6, `${Math.round(span / 60000)} min ago`), label(BOX.right, HEIGHT - 6, "now", "end"));
  const latest = values.length > 0 ? `last ${short(values.at(-1))} ${unit}, most ${short(Math.max(...values))}` : null;
  show(svg, frame, latest && `${latest}${baseline === null ? "" : `, plain ${short(baseline)}`}`);
}

/** The end of an axis: a round number, whose half is one too. */
function above(value) {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.6, 2, 3, 4, 6, 8, 10].find((step) => step * unit >= value) * unit;
}

function axes(most, words) {
  const frame = [];
  for (const share of [0, 0.5, 1]) {
    const y = down(share);
    frame.push(shape("line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: y, y2: y }));
    frame.push(label(BOX.left - 4, y + 3, words(most * share), "end"));
  }
  return frame;
}

function label(x, y, text, anchor = "start") {
  return shape("text", { x, y, "text-anchor": anchor }, text);
}

function show(svg, frame, said) {
  if (said === null) frame.push(label(WIDTH / 2 + 14, HEIGHT / 2, "nothing yet", "middle"));
  svg.setAttribute("aria-label", said ?? "nothing yet");
  svg.replaceChildren(...frame);
}

/** How full a slot is. */
export function slot(number, { busy, tokens }, context) {
  const words = context > 0 ? `${short(tokens)} of ${short(context)} tokens` : `${short(tokens)} tokens`;
  return element(
    "li",
    { class: busy ? "busy" : "idle" },
    element("span", {}, `${number} ${busy ? "busy" : "idle"}`),
    element("progress", { max: context || 1, value: Math.min(tokens, context || 1), "aria-label": `Slot ${number}` }),
    element("span", { class: "dim" }, words),
  );
}
