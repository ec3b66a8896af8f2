// The state of the server and its numbers, asked for about once a second.

import { list } from "./answer.js";
import { read } from "./api.js";
import { byId, duration, element, percent, say, short } from "./dom.js";
import * as plots from "./plots.js";

const EVERY_MS = 1000;
const EVERY_HIDDEN_MS = 10_000;
const LIMIT_MS = 8000;
/** How far back the plots go. */
const SPAN_MS = 120_000;

/** How many recoveries are listed. */
const RECOVERIES = 12;

const WORDS = {
  starting: "The engine is starting.",
  degraded: "The engine works, but not as it should.",
  recovering: "The engine is being restarted; answers go on afterwards.",
  failed: "The engine has failed and is not being restarted.",
  unloaded: "No model is loaded.",
  stopping: "The server is stopping.",
  unreachable: "The server cannot be reached. This page keeps trying.",
};

let status = null;
let heard = () => {};
let timer = null;
let asking = false;
/** What was counted at each poll, the latest last, with what follows from the one before it. */
let history = [];

/** What the server said last, or null. */
export const last = () => status;

export function start(listener) {
  heard = listener;
  document.addEventListener("visibilitychange", () => !document.hidden && poll());
  poll();
}

async function poll() {
  if (asking) return;
  clearTimeout(timer);
  asking = true;
  try {
    status = await read("status", { signal: AbortSignal.timeout(LIMIT_MS) });
    remember(status);
    present(status);
    heard(status);
  } catch (error) {
    state("unreachable", error.status ? error.message : null);
  }
  asking = false;
  timer = setTimeout(poll, document.hidden ? EVERY_HIDDEN_MS : EVERY_MS);
}

function remember({ totals, restarts }) {
  if (!totals) return;
  const at = performance.now();
  const { totals: before, restarts: earlier } = history.at(-1) ?? {};
  const since = (name) => (totals[name] ?? 0) - (before?.[name] ?? 0);
  // A new server counts from zero.
  const anew = before !== undefined && (since("generated") < 0 || since("drafted") < 0);
  const restarted = anew || restarts > earlier;
  const over = (what, per) => (before !== undefined && !anew && since(per) > 0 ? since(what) / since(per) : null);
  const speed = since("generated") > 0 ? over("generated", "generation_seconds") : null;
  history.push({ at, totals, restarts, anew, restarted, speed, length: over("drafted", "drafts") });
  history = history.filter((entry) => at - entry.at <= SPAN_MS);
}

function present(status) {
  const parts = loading(status).map(([name, share]) => `${name} ${percent(share)}`);
  const loaded = parts.length > 0 ? `Loaded: ${parts.join(", ")}.` : null;
  state(status.state, [loaded, status.reason].filter(Boolean).join(" "));
  say(byId("model"), named(status.model));
  progress(status);
  facts(status);
  draw(status);
  recoveries(status.recoveries ?? []);
}

function state(name, reason) {
  byId("state").dataset.state = name;
  say(byId("state-name"), name);
  byId("state").title = reason ?? "";
  const banner = byId("banner");
  banner.hidden = WORDS[name] === undefined;
  banner.dataset.state = name;
  say(banner, [WORDS[name], reason].filter(Boolean).join(" "));
}

function named(model) {
  if (!model) return "";
  return model.draft ? `${model.id} + ${model.draft}` : model.id;
}

/** How far loading is: names and shares. */
function loading({ progress }) {
  return ["target", "draft"].map((name) => [name, progress?.[name]]).filter(([, share]) => typeof share === "number");
}

function progress(status) {
  const bars = loading(status).map(([name, share]) =>
    element("label", { class: "loading" }, `loading the ${name}, ${percent(share)}`, element("progress", { max: 1, value: share })),
  );
  byId("progress").replaceChildren(...bars);
}

function facts(status) {
  const { speculation, model, last_decode: decode } = status;
  table(byId("facts"), [
    ["State", [status.state, status.reason].filter(Boolean).join(": ")],
    ["Speculation", speculation && (speculation.active ? list(speculation.effective) || "on" : "off")],
    ["Asked for", speculation && (list(speculation.requested) || "nothing")],
    ["Why", speculation?.reason],
    ["Speed-up", status.speedup ? `${short(status.speedup)} × plain` : null],
  ]);
  table(byId("server"), [
    ["Model", model?.description],
    ["Context", model ? `${short(model.context)} tokens, ${model.slots} ${model.slots === 1 ? "slot" : "slots"}` : null],
    ["Vocabulary", model?.vocabulary ? `${short(model.vocabulary)} tokens` : null],
    ["Chat template", model && !model.chat_template ? "none in the file" : null],
    ["Last decode", decode ? `${duration(decode.age_ms)} ago, ${decode.ok ? "worked" : "failed"}` : null],
    ["Requests", counted(status.requests)],
    ["Restarts", short(status.restarts ?? 0)],
  ]);
}

function counted(requests) {
  const names = ["running", "queued", "finished", "cancelled", "failed"].filter((name) => requests?.[name] > 0);
  return names.map((name) => `${short(requests[name])} ${name}`).join(", ") || "none";
}

/** Changes only what differs: a selection in the list stays. */
function table(target, all) {
  const rows = all.filter(([, value]) => value);
  const names = rows.map(([name]) => name).join();
  if (target.dataset.names !== names) {
    target.dataset.names = names;
    target.replaceChildren(
      ...rows.flatMap(([name]) => [element("dt", {}, name), element("dd", { dir: "auto" })]),
    );
  }
  const values = target.querySelectorAll("dd");
  rows.forEach(([, value], at) => say(values[at], value));
}

function draw(status) {
  const now = performance.now();
  const marks = history.filter(({ restarted }) => restarted).map(({ at }) => at);
  const over = { now, span: SPAN_MS, marks };
  const plain = status.plain_tokens_per_second ?? null;
  const series = (name) => history.map((entry) => ({ at: entry.at, value: entry[name] }));
  plots.line(byId("speed"), series("speed"), { ...over, baseline: plain, unit: "tokens per second" });
  plots.line(byId("length"), series("length"), { ...over, unit: "tokens a draft" });
  say(byId("speed-said"), latest("speed", "", plain));
  say(byId("length-said"), latest("length", " tokens a draft", null));
  acceptance();
  const context = status.model?.context ?? 0;
  byId("slots").replaceChildren(...(status.slots ?? []).map((slot, at) => plots.slot(at + 1, slot, context)));
}

function latest(name, unit, plain) {
  const value = history.findLast((entry) => entry[name] !== null)?.[name] ?? null;
  if (value === null) return "";
  return `${short(value)}${unit}${plain ? `, ${short(value / plain)} × plain` : ""}`;
}

/** Of the span of the plots if something was drafted in it, else since the start. */
function acceptance() {
  const totals = history.at(-1)?.totals ?? {};
  const drafted = totals.drafted_per_position ?? [];
  const accepted = totals.accepted_per_position ?? [];
  const base = history[Math.max(0, history.findLastIndex(({ anew }) => anew))]?.totals ?? {};
  const less = (all, part) => all.map((count, at) => count - (part?.[at] ?? 0));
  const recent = less(drafted, base.drafted_per_position);
  const some = recent.some((count) => count > 0);
  const shown = some ? recent : drafted;
  plots.bars(byId("acceptance"), shown, some ? less(accepted, base.accepted_per_position) : accepted);
  const any = shown.some((count) => count > 0);
  say(byId("acceptance-said"), any ? (some ? "in the last 2 minutes" : "since the start") : "");
}

function recoveries(all) {
  const latest = all.toSorted((one, other) => one.at_ms_ago - other.at_ms_ago).slice(0, RECOVERIES);
  const items = latest.map(({ at_ms_ago: ago, what }) =>
    element("li", { dir: "auto" }, `${duration(ago)} ago: ${what}`),
  );
  byId("recoveries").replaceChildren(...(items.length > 0 ? items : [element("li", { class: "dim" }, "none")]));
}
