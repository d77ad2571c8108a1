// A client of a service for tests. Its time runs faster, so that waiting for the permitted rate takes no real time.
import { systemClock } from "../../src/lib/time/clock.ts";
import { openCredentials } from "../../src/upload/client/credentials.ts";
import { MethodCaller } from "../../src/upload/client/method-caller.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openRpcClient } from "../../src/upload/client/rpc-client.ts";
import { testRuntime } from "./runtime.ts";
import { integration, password } from "./service.ts";
import { fastClock } from "./uploading.ts";

export async function methodCaller(
  url: string,
  service: Record<string, unknown> = {},
): Promise<AsyncDisposable & { readonly caller: MethodCaller }> {
  const options = serviceOptions.parse({ url, integration, auth: { basic: { password } }, ...service });
  const runtime = testRuntime({ clock: systemClock() });
  const credentials = await openCredentials(options, "/nowhere/token.json", runtime);
  const client = await openRpcClient({ options, credentials, agent: "tagferry/test" }, runtime);
  const caller = new MethodCaller(
    { options, client, maxAnswerBytes: 64 * 2 ** 20 },
    testRuntime({ clock: fastClock(1_000) }),
  );
  return {
    caller,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await credentials[Symbol.asyncDispose]();
    },
  };
}
