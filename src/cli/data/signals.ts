// `tagferry signals`: compares signal metadata with the service, and saves or publishes it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { inputsOf } from "../../agent/own-signals.ts";
import { loadConfig } from "../../config/load.ts";
import type { Logger } from "../../core/runtime.ts";
import { visible } from "../../lib/text/visible.ts";
import { saveViewIn } from "../../upload/client/method-caller.ts";
import { signalView } from "../../upload/signals/attribute-map.ts";
import { ItemPublisher, type PlannedItem } from "../../upload/signals/item-publisher.ts";
import { savePaged } from "../../upload/signals/save-paged.ts";
import { PublishedItems, readKeptSignals } from "../../upload/signals/signal-files.ts";
import { type OurSignals, reviewSignals } from "../../upload/signals/stored-signals.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import { commandRuntime, silent } from "../shared/command-runtime.ts";
import { openServiceCaller } from "../shared/service-caller.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, printResult } from "../terminal/text.ts";
import { planJson, planLines, type SignalPlan, type SignalStep, toSave } from "./signal-plan.ts";

interface SignalsOptions extends ConfigOptions {
  readonly dryRun?: boolean;
}

export async function diffSignals(options: SignalsOptions, io: Console): Promise<void> {
  await using work = await prepare(options, io);
  const publishes = work.config.service.signals.publish !== "off";
  printPlan(await planOf(work, publishes, io), options, io);
}

/** Saves new and changed signals. Resolves with `failed` if some are refused. Rejects as `MethodCaller.call` does. */
export async function signalsSave(options: SignalsOptions, io: Console): Promise<ExitStatus> {
  await using work = await prepare(options, io);
  const { caller } = work.service;
  const plan = await planOf(work, false, io);
  if (options.dryRun === true) {
    printPlan(plan, options, io);
    return exitStatus.done;
  }
  const savings = toSave(plan).map(({ input, view }) => ({ key: input, view: saveViewIn(caller.version, view) }));
  let saved = 0;
  const refused = await savePaged(
    caller,
    savings,
    {
      method: "integration.saveSignals",
      createOnly: work.config.service.signals.createOnly,
      saved: ({ size }) => {
        saved += size;
        io.progress(`${saved} of ${count(savings.length, "signal")} saved`);
      },
    },
    io.signal,
  );
  io.progress(undefined);
  const rejected = refused.map(({ key, reason }) => ({ input: key, reason }));
  printPlan(plan, options, io, { saved, refused: rejected });
  return rejected.length === 0 ? exitStatus.done : exitStatus.failed;
}

/** Publishes the signals. Resolves with `failed` if some are refused. Rejects as `MethodCaller.call` does. */
export async function signalsPublish(options: SignalsOptions, io: Console): Promise<ExitStatus> {
  await using work = await prepare(options, io);
  const refused: { input: string; reason: string }[] = [];
  let published = 0;
  const publish = async (items: readonly PlannedItem[]) => {
    const done = await work.publisher.publish(items, io.signal);
    published += done.published.length;
    refused.push(...done.refused);
    io.progress(`${count(published, "item")} published`);
  };
  const plan = await planOf(work, true, io, options.dryRun === true ? undefined : publish);
  io.progress(undefined);
  // Saving is another command.
  const items = { ...plan, steps: undefined };
  printPlan(items, options, io, options.dryRun === true ? undefined : { published, refused });
  return refused.length === 0 ? exitStatus.done : exitStatus.failed;
}

type Work = Awaited<ReturnType<typeof prepare>>;

async function prepare({ config: file }: SignalsOptions, io: Console) {
  const config = await loadConfig(file, io.environment);
  const { url, integration, signals } = config.service;
  const { dataDir } = config.agent;
  const target = `${url} ${integration}`;
  await using opened = new AsyncDisposableStack();
  const service = opened.use(await openServiceCaller(config, commandRuntime()));
  const kept = readKeptSignals(join(dataDir, "signals.db"), target);
  if (!kept)
    io.complain(
      `tagferry: cannot read the state of an agent in ${visible(dataDir)}: only the configuration is compared, without the names and units that devices report`,
    );
  const inputs = inputsOf(config);
  const ours: OurSignals = {
    inputs: () => new Set([...inputs.fixed.keys(), ...(kept?.keys() ?? [])]),
    metadata(input) {
      const [device, configured] = [kept?.get(input)?.metadata, inputs.fixed.get(input)];
      return device || configured ? { ...device, ...configured } : undefined;
    },
    configured: (input) => inputs.has(input),
  };
  const log = complaining(io);
  const stateDir = join(dataDir, "upload");
  // Only the agent creates the folder. Created by another user, it would block the agent.
  const record = existsSync(stateDir) ? join(stateDir, "published.db") : ":memory:";
  const published = opened.use(PublishedItems.open(record, target, log));
  const mode = signals.publish === "off" ? "update" : signals.publish;
  const publisher = new ItemPublisher({ caller: service.caller, published, mode, require: signals.require, log });
  const owned = opened.move();
  return { config, service, ours, publisher, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Reads all signals. `publish` receives the items of each page before the next page is read. */
async function planOf(
  { service: { caller }, ours, publisher, config }: Work,
  items: boolean,
  io: Console,
  publish?: (items: readonly PlannedItem[]) => Promise<void>,
): Promise<SignalPlan> {
  const { createOnly } = config.service.signals;
  const steps: SignalStep[] = [];
  const planned: PlannedItem[] = [];
  let same = 0;
  const { missing, unconfigured, nameless } = await reviewSignals(
    caller,
    ours,
    {
      items,
      async each(page) {
        const ofPage: PlannedItem[] = [];
        for (const { input, signal, stored, changes } of page) {
          const view = signalView(input, signal);
          if (changes.length === 0 || !view) same++;
          else steps.push({ input, action: createOnly ? "leave" : "change", changes, view });
          if (items) ofPage.push(publisher.plan(input, signal, stored));
        }
        planned.push(...ofPage);
        await publish?.(ofPage);
        io.progress(`${count(same + steps.length, "signal")} compared`);
      },
    },
    io.signal,
  );
  io.progress(undefined);
  for (const input of missing) {
    const signal = ours.metadata(input);
    const view = signal && signalView(input, signal);
    if (view) steps.push({ input, action: "create", changes: [], view });
  }
  return { steps, same, unconfigured, nameless, items: items ? planned : undefined };
}

interface Done {
  readonly saved?: number;
  readonly published?: number;
  readonly refused: readonly { readonly input: string; readonly reason: string }[];
}

function printPlan(plan: SignalPlan, options: SignalsOptions, io: Console, done?: Done): void {
  const { saved, published, refused = [] } = done ?? {};
  const lines = () => [
    ...planLines(plan),
    ...(saved === undefined ? [] : [`${count(saved, "signal")} saved`]),
    ...(published === undefined ? [] : [`${count(published, "item")} published`]),
  ];
  printResult(options, { ...planJson(plan), ...(done && { done }) }, lines, io);
  if (options.json) return;
  for (const line of columns(refused.map(({ input, reason }) => [input, reason])))
    io.complain(`tagferry: refused:${line}`);
}

/** Shows the publisher's warnings to the user of the command. */
function complaining(io: Console): Logger {
  const log: Logger = {
    ...silent,
    warn: ({ reason }, message) =>
      io.complain(`tagferry: ${message}${typeof reason === "string" ? `: ${reason}` : ""}`),
    child: () => log,
  };
  return log;
}
