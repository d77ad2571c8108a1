// A simulated production line: an OPC UA server (node-opcua-server), security None, certificate in a temporary folder.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runtime } from "../core/runtime.ts";
import { orAbort } from "../lib/flow/abort.ts";
import { repeat, waitUntil } from "../lib/flow/repeat.ts";
import { type DeviceOptions, inputId, type SimulatedDevice, stopWait } from "./device.ts";
import { NotificationLedger } from "./notification-ledger.ts";

const namespace = "urn:tagferry:demo:line";

/** The variables. Quarters and integers are exact in every type and in the comparison. */
const kinds = [
  { name: "Speed", dataType: "Double", start: 1_000, step: 0.25, unit: "rpm" },
  { name: "Torque", dataType: "Float", start: 10, step: 0.25, unit: "N·m" },
  { name: "Pieces", dataType: "UInt32", start: 1, step: 1, unit: "" },
  { name: "Offset", dataType: "Int32", start: -50, step: 1, unit: "mm" },
  { name: "Runtime", dataType: "Int64", start: 3_000_000_000, step: 1, unit: "s" },
] as const;

/** A value counts as delivered when a notification with it was sent. */
export async function openOpcuaDevice(
  { tags, everyMs, record }: DeviceOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<SimulatedDevice> {
  const [{ OPCUAServer }, { MessageSecurityMode, SecurityPolicy }, { OPCUACertificateManager }] = await Promise.all([
    import("node-opcua-server"),
    import("node-opcua-client"),
    import("node-opcua-certificate-manager"),
  ]);
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tagferry-demo-"));
  opening.defer(() => rm(folder, { recursive: true, force: true }));

  const certificates = new OPCUACertificateManager({ rootFolder: folder, automaticallyAcceptUnknownCertificate: true });
  await orAbort(certificates.initialize(), signal);
  opening.defer(() => certificates.dispose());
  const server = new OPCUAServer({
    host: "127.0.0.1",
    hostname: "127.0.0.1",
    port: 0,
    securityModes: [MessageSecurityMode.None],
    securityPolicies: [SecurityPolicy.None],
    allowAnonymous: true,
    serverCertificateManager: certificates,
    userCertificateManager: certificates,
  });
  await orAbort(server.initialize(), signal);
  opening.defer(() => server.shutdown(0));
  await orAbort(server.start(), signal);
  const url = `opc.tcp://127.0.0.1:${server.endpoints[0]?.port}`;

  const addressSpace = server.engine.addressSpace;
  if (!addressSpace) throw new TypeError("an initialized server has an address space");
  const own = addressSpace.registerNamespace(namespace);
  const line = own.addObject({ browseName: "Line", organizedBy: addressSpace.rootFolder.objects });
  const variables = Array.from({ length: tags }, (_, i) => {
    const kind = kinds[i % kinds.length] ?? kinds[0];
    const name = `${kind.name}${Math.floor(i / kinds.length) + 1}`;
    const nodeId = `s=Line.${name}`;
    const node = own.addVariable({ componentOf: line, browseName: name, nodeId, dataType: kind.dataType });
    return { ...kind, name, node, nodeId, input: inputId(`demo.line.${name}`), value: kind.start - kind.step };
  });
  const ledger = new NotificationLedger(
    new Map(variables.map(({ node, input }) => [node.nodeId.toString(), input])),
    record,
  );
  server.on("request", (request) => ledger.request(request));
  server.on("response", (response) => ledger.response(response));

  const count = () => {
    for (const variable of variables) {
      const value = (variable.value += variable.step);
      const { node, dataType } = variable;
      node.setValueFromSource(
        dataType === "Int64" ? { dataType, arrayType: "Scalar", value: int64(value) } : { dataType, value },
      );
    }
  };
  const work = opening.use(
    repeat(count, { everyMs, first: "now", failure: "simulated line stopped counting" }, runtime),
  );

  const owned = opening.move();
  return {
    url,
    inputs: variables.map(({ input }) => input),
    configuration: { source: source(url, everyMs, variables) },
    async stop(stopSignal) {
      await orAbort(Promise.resolve(work[Symbol.asyncDispose]()), stopSignal);
      const isReported = () =>
        variables.every(
          ({ input, value }) => !ledger.watched(input) || (record.values.get(input)?.has(value) ?? false),
        );
      await waitUntil(() => isReported() && ledger.taken, stopWait, runtime.clock, stopSignal);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** node-opcua represents 64 bits as a pair of halves, high first. */
function int64(value: number): [number, number] {
  return [Math.floor(value / 2 ** 32), value % 2 ** 32];
}

function source(url: string, everyMs: number, variables: readonly { name: string; nodeId: string; unit: string }[]) {
  // Sampled several times per change, so that each value is seen.
  const sampling = Math.max(50, Math.floor(everyMs / 4));
  const tags = variables.map(
    ({ name, nodeId, unit }) =>
      `      - { input: "demo.line.${name}", node: "nsu=${namespace};${nodeId}"${unit === "" ? "" : `, signal: { engUnit: "${unit}" }`} }\n`,
  );
  return `  line:
    type: opcua
    url: ${url}
    security: { mode: none }
    every: ${sampling}ms
    tags:
${tags.join("")}`;
}
