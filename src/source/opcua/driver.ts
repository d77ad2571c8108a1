// The OPC UA driver. The stack is loaded by the first `open`.
import type { Driver } from "../../core/driver.ts";
import { probePlace } from "./certificates/pki.ts";
import { listCertificates, rejectCertificate, trustCertificate } from "./certificates/trust.ts";
import { browseAmbiguity, browseOverlaps } from "./config/node-address.ts";
import { type OpcuaConfig, opcuaOptions, opcuaTag } from "./config/options.ts";

export const opcuaDriver: Driver<"opcua", typeof opcuaOptions, typeof opcuaTag> = {
  type: "opcua",
  summary: "OPC UA servers: subscriptions over opc.tcp, with security",
  example: {
    protocol: "OPC UA",
    device: "an OPC UA server",
    addresses: ["opc.tcp://host:4840"],
    entries: ['- { input: line3.temp, node: "nsu=urn:plc:line3;s=Temp", report: { deadband: 0.2 } }'],
  },
  schema: opcuaOptions,
  tag: opcuaTag,
  schemes: ["opc.tcp"],
  ranges: true,
  // An attempt begins with a single TCP connect, which times out after 3 s.
  unreachablePauseMs: 1_500,
  captures: (tag) => (tag.browse === undefined ? [] : ["name", "path"]),
  ambiguity: browseAmbiguity,
  overlaps: browseOverlaps,
  identity: ({ url, servers, security, username, userCertificate }) =>
    JSON.stringify([url, servers, security, username, userCertificate?.certFile]),
  async open(config, runtime, signal) {
    if (config.options.servers.length > 0) {
      const { openRedundant } = await import("./redundancy/redundant-set.ts");
      return openRedundant(config, runtime, signal);
    }
    const { openOpcua } = await import("./connection/open.ts");
    return openOpcua(config, runtime, signal);
  },
  async shadow(config, stateDir) {
    // The probe shares the certificates, but has its own session.
    const { sharedDir = config.stateDir, options } = config;
    const { dir, forbidden } = await probePlace(sharedDir, stateDir);
    const probe: OpcuaConfig = {
      ...config,
      final: () => true,
      // If the probe is killed, the server soon removes its session.
      options: {
        ...options,
        session: { timeout: Math.min(options.session.timeout, probeKeptMs) },
        subscription: { ...options.subscription, lifetime: Math.min(options.subscription.lifetime, probeKeptMs) },
      },
      stateDir,
      sharedDir: dir,
      ...(forbidden !== undefined && { forbiddenDir: forbidden }),
    };
    return probe;
  },
  async *browse(target, runtime, signal) {
    const { browseOpcua } = await import("./browse/browse.ts");
    yield* browseOpcua(target, runtime, signal);
  },
  async explore(target, runtime, signal) {
    const { exploreOpcua } = await import("./browse/explore.ts");
    return await exploreOpcua(target, runtime, signal);
  },
  async endpoints(target, runtime, signal) {
    const { offeredEndpoints } = await import("./browse/browse.ts");
    return offeredEndpoints(target, runtime, signal);
  },
  certificates: { list: listCertificates, trust: trustCertificate, reject: rejectCertificate },
  forecast: ({ tags }) => ({ readingsPerSecond: tags.reduce((sum, { every }) => sum + 1_000 / every, 0) }),
};

const probeKeptMs = 60_000;
