// From the configuration to a live source: chooses transport and frames, and connects.
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";
import type { Exchange } from "./exchange.ts";
import { streamExchange } from "./exchange.ts";
import { Link } from "./link.ts";
import { MbapFraming } from "./mbap-framing.ts";
import type { ModbusOptions } from "./options.ts";
import { ModbusSource } from "./source.ts";
import { connectTcp } from "./tcp-stream.ts";
import type { ModbusConfig } from "./wanted.ts";

/** Connects. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export async function openModbus(config: ModbusConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { options, name } = config;
  const { clock, random, metrics } = runtime;
  const own: Runtime = {
    clock,
    random,
    metrics,
    log: runtime.log.child({ part: "source", source: name, driver: "modbus" }),
  };
  const link = await Link.open(
    {
      name,
      units: new Set(config.tags.map((tag) => tag.unit)),
      delayMs: options.interRequestDelay,
      pauseAfterConnectMs: options.pauseAfterConnect,
      connect: (connecting) => connect(options, runtime, connecting),
    },
    own,
    signal,
  );
  return new ModbusSource(config, link, own);
}

async function connect(options: ModbusOptions, runtime: Runtime, signal: AbortSignal): Promise<Exchange> {
  const { url, localAddress, connectTimeout } = options;
  if (url.transport !== "tcp" || url.frames !== "mbap")
    throw new AgentError("SOURCE_PROTOCOL", `${url.text}: only tcp:// is built so far`);
  const stream = await connectTcp({ host: url.host, port: url.port, localAddress, timeoutMs: connectTimeout }, signal);
  const firstId = Math.floor(runtime.random() * 65_536);
  return streamExchange(stream, new MbapFraming({ anyUnit: options.replyUnit === "any", firstId }), runtime.clock);
}
