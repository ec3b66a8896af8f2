// What is asked for with each message. Kept until the tab is closed.

import { byId, element, say } from "./dom.js";

const STORE = "llama-spec-settings";
const FIELDS = ["system", "temperature", "max-tokens", "speculation", "draft-max"];
/** What can be asked for whatever the engine is. */
const ALWAYS = ["auto", "off"];

const value = (name) => byId(name).value.trim();
const number = (name) => (value(name) === "" ? undefined : Number(value(name)));

export function start() {
  let kept = {};
  try {
    kept = JSON.parse(sessionStorage.getItem(STORE)) ?? {};
  } catch {
    // Another program wrote it.
  }
  if (typeof kept.speculation === "string") offer([kept.speculation]);
  for (const name of FIELDS) if (typeof kept[name] === "string") byId(name).value = kept[name];
  byId("settings").addEventListener("input", () => {
    sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, byId(name).value]))));
    summary();
  });
  summary();
}

/** Offers these methods. What is chosen stays: if the engine does not have it any more, the server says so. */
export function offer(methods) {
  const select = byId("speculation");
  const chosen = select.value;
  const all = [...new Set([...ALWAYS, chosen, ...methods])].filter((method) => method !== "");
  if (all.join() === [...select.options].map((option) => option.value).join()) return;
  select.replaceChildren(...all.map((method) => element("option", { value: method }, method)));
  select.value = chosen === "" ? "auto" : chosen;
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
