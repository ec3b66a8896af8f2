// What is asked for with each message. Kept until the tab is closed.

import { byId, element, say } from "./dom.js";

const STORE = "llama-spec-settings";
const FIELDS = ["system", "temperature", "max-tokens", "speculation", "draft-max"];
/** These draft from the text alone, so every pair can. */
const LOOKUPS = ["ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"];

const value = (name) => byId(name).value.trim();
const number = (name) => (value(name) === "" ? undefined : Number(value(name)));

export function start() {
  offer([]);
  let kept = {};
  try {
    kept = JSON.parse(sessionStorage.getItem(STORE)) ?? {};
  } catch {
    // Another program wrote it.
  }
  for (const name of FIELDS) if (typeof kept[name] === "string") byId(name).value = kept[name];
  if (byId("speculation").value === "") byId("speculation").value = "auto";
  byId("settings").addEventListener("input", () => {
    sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, byId(name).value]))));
    summary();
  });
  summary();
}

/** Offers the methods that the engine runs, beside those that any engine can. */
export function offer(methods) {
  const select = byId("speculation");
  const known = new Set([...select.options].map((option) => option.value));
  for (const method of [...methods, ...LOOKUPS]) {
    if (!known.has(method)) select.append(element("option", { value: method }, method));
  }
}

/** The fields of a request. */
export function settings() {
  const method = byId("speculation").value;
  const most = number("draft-max");
  const temperature = number("temperature");
  let speculation = method;
  if (method !== "off" && (method !== "auto" || most !== undefined)) {
    speculation = { methods: method === "auto" ? undefined : [method], draft_max: most };
  }
  return { temperature, max_completion_tokens: number("max-tokens"), speculation };
}

export function systemPrompt() {
  return value("system");
}

function summary() {
  const parts = [`speculation ${byId("speculation").value}`];
  if (value("temperature") !== "") parts.push(`temperature ${value("temperature")}`);
  if (value("max-tokens") !== "") parts.push(`${value("max-tokens")} tokens`);
  if (value("system") !== "") parts.push("system prompt");
  say(byId("settings-said"), parts.join(", "));
}
