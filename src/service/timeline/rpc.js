// Calls to the service, with the credentials of the person at the page.

/** What the service refused; in its words, unless they do not say what is wrong. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Rpc {
  #authorization;
  #namespace;

  constructor(integration, password, namespace) {
    this.integration = integration;
    const bytes = new TextEncoder().encode(`${integration}:${password}`);
    this.#authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
    this.#namespace = namespace;
  }

  /** Resolves with the result. Rejects with `Refusal`. */
  async call(method, params, version = "1.1beta1") {
    const name = method.replace(/^platform\./, `${this.#namespace}.`);
    const response = await fetch("v1/rpc", {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-version": version, authorization: this.#authorization },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: name, params }),
    }).catch(() => {
      throw new Refusal("The service does not answer. See whether it runs, and repeat.");
    });
    const body = await response.json();
    if (response.status === 401)
      throw new Refusal("The service does not know this Integration ID with this password.", 401);
    if (!response.ok) throw new Refusal(body.error_description, response.status);
    if (body.error) {
      const faults = Object.entries(body.error.data?.params ?? {}).map(
        ([path, texts]) => `${path} ${texts.join(", ")}`,
      );
      throw new Refusal([body.error.message, ...faults].join("; "), response.status);
    }
    return body.result;
  }
}
