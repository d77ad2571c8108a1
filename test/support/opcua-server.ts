// An OPC UA server in this process (node-opcua-server): a line of variables that a test sets, a user, endpoints with
// and without security, and its keys in a given folder.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ISessionContext, UAVariable } from "node-opcua-address-space";
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import {
  DataType,
  DataValue,
  MessageSecurityMode,
  type NodeId,
  SecurityPolicy,
  ServiceFault,
  type StatusCode,
  StatusCodes,
  Variant,
  type VariantOptions,
} from "node-opcua-client";
import { OPCUAServer, Subscription } from "node-opcua-server";
import { putKey } from "./opcua-key.ts";
import { addStructures, type Drive, type Structures } from "./opcua-structures.ts";

export const lineNamespace = "urn:tagferry:test:line";
const applicationUri = "urn:tagferry:test:server";
/** The value of variables with the same name as another one in a different namespace. */
export const decoyCount = 666;
export const user = { name: "reader", password: "rope" } as const;
/** A login with an empty password. */
export const guest = "guest";
const passwords = new Map<string, string>([
  [user.name, user.password],
  [guest, ""],
]);

export interface OpcuaServerOptions {
  /** Keys and certificates. The same folder gives the same server certificate. */
  readonly folder: string;
  /** 0: any free port. */
  readonly port?: number;
  /** Adds endpoints with security; `deprecated`: with deprecated security policies. */
  readonly secure?: boolean | "deprecated";
  /** The host name in its endpoints; default 127.0.0.1. */
  readonly hostname?: string;
  /** The folder of trusted user certificates, initially empty; default: every user certificate is trusted. */
  readonly users?: string;
  readonly anonymous?: boolean;
  /** The maximum number of items per subscription, which the server announces. More are refused. */
  readonly maxItems?: number;
  /** The maximum number of items of all clients together. More are refused. */
  readonly maxItemsInAll?: number;
  /** Namespaces before that of the line, which change its index. Each has its own Count with the value `decoyCount`. */
  readonly before?: readonly string[];
  /** The fastest publishing interval in milliseconds. Applies to all servers in this process until this one ends. */
  readonly fastestPublishing?: number;
  /** False: the server does not support TransferSubscriptions. */
  readonly transfer?: boolean;
  /** The end of the certificate's validity; default ten years from now. */
  readonly validTo?: Date;
  /** Changes the server's behaviour before it listens. */
  readonly meddle?: (server: OPCUAServer) => void;
}

export interface OpcuaServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly sessions: number;
  readonly subscriptions: number;
  /** Values of Count that were sampled or read so far. */
  readonly counted: ReadonlySet<number>;
  /** Values of Temp that were sampled or read so far. */
  readonly temps: ReadonlySet<number>;
  /** The ServiceLevel of the server: 0 to 255. */
  serviceLevel: number;
  /** The number of monitored items of all clients. */
  readonly monitored: number;
  /** The number of sent, unacknowledged messages of all clients. */
  readonly unacknowledged: number;
  /** Discards the unacknowledged messages, like servers that keep none. */
  forget(): void;
  /** Ends all sessions, as after their timeout. With `kept` their subscriptions continue to exist. */
  endSessions(subscriptions?: "deleted" | "kept"): void;
  /** Deletes all monitored items and keeps the subscriptions. */
  dropItems(): void;
  /** Makes it a member of a redundant set of itself and these servers. */
  partner(uris: readonly string[]): void;
  /** Trusts a user's certificate, PEM. */
  trustUser(certificateFile: string): Promise<void>;
  /** Sets a variable of the line; default timestamp: now. */
  set(name: keyof LineVariables, value: unknown, at?: Date): void;
  /** Makes a variable of the line bad. */
  break(name: keyof LineVariables): void;
  /** Sets the variables `Drive`, a structure, and `Drives`, an array of two, and adds them first if necessary. */
  drive(value: Drive, at?: Date): Promise<void>;
  /** Changes the unit of Temp. */
  setUnit(unit: string): void;
  /** Adds a variable below `Objects/Line`; default value 1. Registers its namespace first if necessary. */
  add(name: string, value?: number | VariantOptions, namespace?: string): void;
  /** Deletes a variable added with `add`. */
  remove(name: string): void;
}

/** The variables below `Objects/Line`, with NodeIds `s=<name>`. */
export interface LineVariables {
  /** Double, 0 to 200 °C; the server keeps its history. */
  readonly Temp: UAVariable;
  readonly Count: UAVariable;
  readonly Big: UAVariable;
  readonly Ratio: UAVariable;
  /** Enumeration: 0 Off, 1 On, 2 Fault. */
  readonly State: UAVariable;
  readonly Running: UAVariable;
  readonly List: UAVariable;
}

const types = {
  Temp: DataType.Double,
  Big: DataType.Int64,
  Ratio: DataType.Float,
  State: DataType.UInt32,
  Running: DataType.Boolean,
  List: DataType.Double,
} as const;

export async function opcuaServer(options: OpcuaServerOptions): Promise<OpcuaServer> {
  await using opening = new AsyncDisposableStack();
  await putKey("server", options.folder);
  const certificates = new OPCUACertificateManager({
    rootFolder: options.folder,
    automaticallyAcceptUnknownCertificate: true,
    disableFileWatchers: true,
  });
  await certificates.initialize();
  const certificateFile = join(options.folder, "own/certs/server.pem");
  if (options.validTo)
    await certificates.createSelfSignedCertificate({
      applicationUri,
      dns: ["127.0.0.1"],
      outputFile: certificateFile,
      subject: "/CN=line",
      startDate: new Date(options.validTo.getTime() - 10 * 86_400_000),
      validity: 10,
    });
  const users =
    options.users === undefined
      ? certificates
      : new OPCUACertificateManager({
          rootFolder: options.users,
          automaticallyAcceptUnknownCertificate: false,
          disableFileWatchers: true,
        });
  const { None, Sign, SignAndEncrypt } = MessageSecurityMode;
  const { Basic256Sha256, Aes256_Sha256_RsaPss, Basic256, Basic128Rsa15 } = SecurityPolicy;
  const safe = options.secure === "deprecated" ? [Basic256, Basic128Rsa15] : [Basic256Sha256, Aes256_Sha256_RsaPss];
  const server = new OPCUAServer({
    host: "127.0.0.1",
    hostname: options.hostname ?? "127.0.0.1",
    port: options.port ?? 0,
    securityModes: options.secure ? [None, Sign, SignAndEncrypt] : [None],
    securityPolicies: [SecurityPolicy.None, ...(options.secure ? safe : [])],
    allowAnonymous: options.anonymous ?? true,
    userManager: { isValidUser: (name: string, password: string) => passwords.get(name) === password },
    ...(options.validTo && { certificateFile }),
    serverCertificateManager: certificates,
    userCertificateManager: users,
    serverCapabilities: {
      ...(options.maxItems !== undefined && { maxMonitoredItemsPerSubscription: options.maxItems }),
      ...(options.maxItemsInAll !== undefined && { maxMonitoredItems: options.maxItemsInAll }),
    },
    serverInfo: { applicationUri },
  });
  await server.initialize();
  options.meddle?.(server);
  if (options.transfer === false) refuseService(server, "TransferSubscriptions", StatusCodes.BadServiceUnsupported);
  const fastest = Subscription.minimumPublishingInterval;
  Subscription.minimumPublishingInterval = options.fastestPublishing ?? fastest;
  opening.defer(() => {
    Subscription.minimumPublishingInterval = fastest;
  });
  opening.defer(() => server.shutdown(0));
  await server.start();
  const port = server.endpoints[0]?.port ?? 0;

  const space = server.engine.addressSpace;
  if (!space) throw new TypeError("an initialized server has an address space");
  for (const uri of options.before ?? []) {
    const other = space.registerNamespace(uri);
    const decoy = {
      organizedBy: space.rootFolder.objects,
      browseName: "Decoy",
      nodeId: "s=Count",
      dataType: DataType.UInt32,
    };
    other.addVariable({ ...decoy, value: new Variant({ dataType: DataType.UInt32, value: decoyCount }) });
  }
  const own = space.registerNamespace(lineNamespace);
  const line = own.addObject({ browseName: "Line", organizedBy: space.rootFolder.objects });
  const counted = new Set<number>();
  let count = { value: 0, at: new Date() };
  const plain = (browseName: string, dataType: DataType, valueRank = -1, namespace = own) =>
    namespace.addVariable({ componentOf: line, browseName, nodeId: `s=${browseName}`, dataType, valueRank });
  const temp = own.addAnalogDataItem({
    componentOf: line,
    browseName: "Temp",
    nodeId: "s=Temp",
    displayName: "Oven temperature",
    description: "in the middle",
    dataType: "Double",
    engineeringUnits: { displayName: "°C", unitId: 4408652, description: "degree Celsius" },
    engineeringUnitsRange: { low: 0, high: 200 },
    value: new Variant({ dataType: DataType.Double, value: 0 }),
  });
  const variables: LineVariables = {
    Temp: temp,
    Count: own.addVariable({
      componentOf: line,
      browseName: "Count",
      nodeId: "s=Count",
      dataType: DataType.UInt32,
      minimumSamplingInterval: 50,
      value: {
        timestamped_get: () => {
          counted.add(count.value);
          return new DataValue({
            value: { dataType: DataType.UInt32, value: count.value },
            sourceTimestamp: count.at,
            serverTimestamp: count.at,
          });
        },
      },
    }),
    Big: plain("Big", DataType.Int64),
    Ratio: plain("Ratio", DataType.Float),
    State: own.addMultiStateDiscrete({
      componentOf: line,
      browseName: "State",
      nodeId: "s=State",
      enumStrings: ["Off", "On", "Fault"],
      value: 0,
    }),
    Running: plain("Running", DataType.Boolean),
    List: plain("List", DataType.Double, 1),
  };
  space.installHistoricalDataNode(variables.Temp, { maxOnlineValues: 1_000 });
  const temps = new Set<number>();
  const read = variables.Temp.readValueAsync.bind(variables.Temp);
  // The server samples with this function.
  Reflect.set(variables.Temp, "readValueAsync", (context: ISessionContext | null, done: SampleCallback) =>
    read(context, (error, value) => {
      if (value) temps.add(Number(value.value.value));
      done(error, value);
    }),
  );
  const level = { value: 255 };
  const levelNode = space.findNode("i=2267") as UAVariable | null; // Server_ServiceLevel is a variable
  levelNode?.bindVariable({ get: () => new Variant({ dataType: DataType.Byte, value: level.value }) }, true);
  const set = (name: keyof LineVariables, value: unknown, at = new Date()) => {
    if (name === "Count") {
      count = { value: Number(value), at };
      return;
    }
    const data = { dataType: types[name], arrayType: name === "List" ? 1 : 0, value };
    variables[name].setValueFromSource(data, StatusCodes.Good, at);
  };
  set("Temp", 20);
  set("Count", 0);
  set("Big", [0, 0]);
  set("Ratio", 0);
  set("Running", false);
  set("List", [1, 2]);

  let structures: Structures | undefined;
  // The server's internal list.
  const sessions = () =>
    Object.values(Reflect.get(server.engine, "_sessions") as Readonly<Record<string, ServerSession>>);
  const subscriptions = () => sessions().flatMap(({ publishEngine }) => publishEngine.subscriptions);

  const owned = opening.move();
  return {
    url: `opc.tcp://127.0.0.1:${port}`,
    port,
    get sessions() {
      return server.engine.currentSessionCount;
    },
    get subscriptions() {
      return server.engine.currentSubscriptionCount;
    },
    set,
    counted,
    temps,
    get serviceLevel() {
      return level.value;
    },
    set serviceLevel(value) {
      level.value = value;
    },
    get monitored() {
      return subscriptions().reduce((sum, { monitoredItemCount }) => sum + monitoredItemCount, 0);
    },
    get unacknowledged() {
      return subscriptions().reduce((sum, { sentNotificationMessageCount }) => sum + sentNotificationMessageCount, 0);
    },
    forget: () => {
      for (const subscription of subscriptions()) subscription._flushSentNotifications();
    },
    endSessions: (end = "deleted") => {
      for (const { authenticationToken } of sessions())
        server.engine.closeSession(authenticationToken, end === "deleted", "Timeout");
    },
    dropItems: () => {
      for (const subscription of subscriptions())
        for (const id of subscription.getMonitoredItems().serverHandles) subscription.removeMonitoredItem(id);
    },
    partner: (uris) => {
      const bind = (nodeId: string, value: { readonly dataType: DataType; readonly value: unknown }) => {
        const variable = space.findNode(nodeId) as UAVariable | null; // a variable of the Server object
        variable?.bindVariable({ get: () => new Variant(value) }, true);
      };
      bind("i=3709", { dataType: DataType.Int32, value: 3 });
      bind("i=11314", { dataType: DataType.String, value: [applicationUri, ...uris] });
    },
    break: (name) =>
      variables[name].setValueFromSource({ dataType: DataType.Null }, StatusCodes.BadNoCommunication, new Date()),
    trustUser: async (certificateFile) => {
      await users.trustCertificate(new X509Certificate(readFileSync(certificateFile)).raw);
    },
    drive: async (value, at = new Date()) => {
      structures ??= await addStructures(space, own, line);
      structures.set(value, at);
    },
    setUnit: (displayName) => {
      const type = space.findDataType("EUInformation");
      if (!type) throw new TypeError("the standard has units");
      const value = space.constructExtensionObject(type, { displayName: { text: displayName }, unitId: -1 });
      temp.engineeringUnits?.setValueFromSource({ dataType: DataType.ExtensionObject, value });
    },
    add: (name, value = 1, namespace = lineNamespace) => {
      const variant = typeof value === "number" ? { dataType: DataType.Double, value } : value;
      const valueRank = variant.arrayType === undefined ? -1 : 1;
      plain(name, variant.dataType as DataType, valueRank, space.registerNamespace(namespace)).setValueFromSource(
        variant,
      );
    },
    remove: (name) => {
      const node = own.findNode(`s=${name}`);
      if (node) space.deleteNode(node);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface ServerSession {
  readonly authenticationToken: NodeId;
  readonly publishEngine: { readonly subscriptions: readonly Subscription[] };
}
type SampleCallback = (error: Error | null, value?: DataValue) => void;

interface Channel {
  send_response(type: "MSG", response: ServiceFault, message: Request): void;
}
interface Request {
  readonly request: { readonly requestHeader: { readonly requestHandle: number } };
}

/** From now on the server refuses each request of `service`. */
export function refuseService(server: OPCUAServer, service: string, serviceResult: StatusCode): void {
  Reflect.set(server, `_on_${service}Request`, (message: Request, channel: Channel) => {
    const { requestHandle } = message.request.requestHeader;
    channel.send_response("MSG", new ServiceFault({ responseHeader: { requestHandle, serviceResult } }), message);
  });
}
