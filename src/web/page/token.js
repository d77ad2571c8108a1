// Requests that need a token: asked for in a dialog when the agent wants one, and kept for the pages of this tab of the
// browser until it is closed.
import { button, element, setHidden, setText } from "./element.js";

/** Agents behind one proxy have paths of their own. */
const name = `tagferry token ${new URL(".", location.href).pathname}`;
const without = "This agent does not offer this on its page, like a demo with a duration.";
let token = kept();

/** Undefined: no page of this tab was given one, or the browser keeps nothing. */
function kept() {
  try {
    return sessionStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

function keep(given) {
  token = given;
  try {
    sessionStorage.setItem(name, given);
  } catch {
    // The next page asks for it.
  }
}

function forget() {
  token = undefined;
  try {
    sessionStorage.removeItem(name);
  } catch {
    // Nothing was kept.
  }
}

/** Resolves with the answer as JSON. Undefined: the person has given no token. Rejects if the agent does not answer. */
export async function withToken(path, { method = "POST", body = {} } = {}) {
  for (;;) {
    const response = await fetch(path, {
      method,
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      ...(method === "POST" && { body: JSON.stringify(body) }),
    });
    // An agent without a control interface knows none of these requests.
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    if (!isJson && [404, 405].includes(response.status)) return { ok: false, reason: without };
    const answer = await response.json();
    if (response.status !== 401) return answer;
    const problem = token === undefined ? undefined : answer.reason;
    forget();
    const given = await askFor(
      method === "POST" ? "A change needs a token" : "This page needs a token",
      problem,
      answer.tokenFile,
    );
    if (given === undefined) return undefined;
    keep(given);
  }
}

/** Resolves with the text of a dialog; undefined: it was closed. */
function askFor(title, problem, tokenFile) {
  const input = element("input", { attributes: { type: "password", id: "token", autocomplete: "off" } });
  const wrong = element("p", { className: "trouble", attributes: { role: "alert" } });
  setHidden(wrong, problem === undefined);
  setText(wrong, problem ?? "");
  const where =
    tokenFile === undefined
      ? "It is http.token of the configuration."
      : `It is http.token of the configuration, or the text of ${tokenFile} on this machine.`;
  const { promise, resolve } = Promise.withResolvers();
  const close = (value) => {
    dialog.remove();
    resolve(value);
  };
  const ok = button("Go on", () => close(input.value.trim() || undefined));
  const cancel = button("Cancel", () => close(undefined));
  const dialog = element(
    "dialog",
    { attributes: { "aria-labelledby": "token-title" } },
    element("h2", { attributes: { id: "token-title" }, text: title }),
    element("p", { className: "quiet" }, element("label", { attributes: { for: "token" }, text: where })),
    wrong,
    element("p", { className: "run" }, input, ok, cancel),
  );
  document.body.append(dialog);
  dialog.addEventListener("cancel", () => close(undefined));
  input.addEventListener("keydown", ({ key }) => key === "Enter" && ok.click());
  dialog.showModal();
  return promise;
}
