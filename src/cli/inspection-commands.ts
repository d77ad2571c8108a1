// Declares the commands about an agent, its data, and its signals at the service.
import type { RunCommand } from "./inspect/support-bundle.ts";
import {
  agentConfigOption,
  type CommandLine,
  formatOptions,
  jsonOption,
  numberFrom,
  parseDurationArgument,
  parsedOption,
  urlOption,
} from "./shared/arguments.ts";

const caFile = "--ca-file <file>  authorities or certificates (PEM) to trust as well, for https://";
const tokenFile = "--token-file <file>  file with the agent's http.token, ";

export function addInspectionCommands(line: CommandLine, runCommand: RunCommand): void {
  const config = line.configOption("configuration of the agent");
  const asked = agentConfigOption("configuration of the agent: it is asked at http.listen");
  const anyAgent = urlOption("http://127.0.0.1:8421");
  const configured = [
    config,
    urlOption("http.listen of the configuration"),
    `${tokenFile}where the data directory cannot be read`,
  ];
  line.add({
    name: "status",
    what: "ask the running agent: sources, buffer, delivery, and what to do where something is wrong",
    takes: [asked, anyAgent, `${tokenFile}where it asks for one`, caFile, "--json  print all of it as JSON"],
    example: "tagferry status --url http://10.0.0.9:8421",
    run: async () => line.located((await import("./inspect/status.ts")).status),
  });
  line.group("fleet", "many agents at once", [
    {
      name: "status",
      what: "one table of many agents: version, configuration, sources, lag, backlog, losses",
      takes: [
        "<target...>  addresses of agents, or files with an address a line",
        `${tokenFile}where they ask for one; sent to all of them`,
        caFile,
        parsedOption("--timeout <time>  how long an agent may take", parseDurationArgument).default(5_000, "5s"),
        jsonOption,
      ],
      more: "Exit status 1 where an agent needs an operator, 69 where one does not answer.",
      example: "tagferry fleet status gateways.txt http://10.0.0.9:8421",
      run: async () => (await import("./inspect/fleet.ts")).fleetStatus,
    },
  ]);
  line.add({
    name: "reload",
    what: "have the running agent take up its changed configuration; an invalid one changes nothing and is reported",
    takes: [asked, anyAgent, `${tokenFile}to ask from another machine or as another user`, caFile, jsonOption],
    more: "A user who can read the data directory of the agent needs no token. Changes of sections other than sources need a restart.",
    example: "tagferry reload -c tagferry.yaml",
    run: async () => line.located((await import("./run/reload.ts")).reload),
  });
  line.add({
    name: "plan",
    what: "list what a changed configuration would do: to sources, Input IDs, units and scaling, load; changes nothing",
    takes: [
      agentConfigOption("the changed configuration; without --from, that of the running agent"),
      "--from <file>  configuration to compare with, as from git; default: the one that the agent has in effect",
      anyAgent,
      `${tokenFile}where the data directory cannot be read`,
      caFile,
      jsonOption,
    ],
    more: "Exit status 78 where the changed configuration is invalid, with all errors.",
    example: "tagferry plan -c tagferry.yaml --from /tmp/before/tagferry.yaml",
    run: async () => line.located((await import("./configure/plan-changes.ts")).planChanges),
  });
  line.add({
    name: "gaps",
    what: "every interval in which tags were not recorded, with its cause and what became of it",
    takes: [
      parsedOption("--since <time>  how far back", parseDurationArgument).default(7 * 86_400_000, "7d"),
      agentConfigOption("configuration of the agent: it is asked, or its data directory is read"),
      anyAgent,
      `${tokenFile}where it asks for one`,
      caFile,
      jsonOption,
    ],
    example: "tagferry gaps --since 24h -c tagferry.yaml",
    run: async () => line.located((await import("./inspect/gaps.ts")).gaps),
  });
  line.add({
    name: "support-bundle",
    what: "gather what is needed to find out what is wrong, in one archive without secrets",
    takes: [...configured, "-o, --output <file>  where it is written (default: tagferry-support-NAME-TIME.tar.gz)"],
    more: `The archive holds: configuration, its check, status, recent log, metrics, buffer, rejects, gaps, versions.
Without an answer of the agent, its status, health, metrics and log are missing. Without a configuration --url is needed.`,
    example: "tagferry support-bundle -c tagferry.yaml",
    run: async () => (await import("./inspect/support-bundle.ts")).supportBundle.bind(undefined, runCommand),
  });
  line.add({
    name: "security",
    what: "what of the agent is protected and what is not: connections, files, process",
    takes: [...configured, jsonOption],
    more: "Without a running agent, only the configuration and its folders are inspected.",
    example: "tagferry security -c tagferry.yaml --json",
    run: async () => (await import("./inspect/security.ts")).security,
  });

  const directory = "<dir>  agent.dataDir, or the folder buffer in it";
  line.group("buffer", "inspect a data directory without a lock, of a running agent or of one that is gone", [
    {
      name: "stat",
      what: "what it holds: segments, points, what is to be delivered, what was lost",
      takes: [directory, jsonOption],
      example: "tagferry buffer stat /var/lib/tagferry",
      run: async () => (await import("./inspect/buffer.ts")).bufferStat,
    },
    {
      name: "verify",
      what: "read every byte; exit status 1 where anything is damaged",
      takes: [directory, jsonOption],
      example: "tagferry buffer verify /var/lib/tagferry",
      run: async () => (await import("./inspect/buffer.ts")).bufferVerify,
    },
    {
      name: "export",
      what: "print the points it holds; exit status 1 where some cannot be read",
      takes: [directory, ...formatOptions("ndjson"), "--undelivered  only what the service does not have yet"],
      more: "In CSV an Input ID that a spreadsheet would take for a formula has a ' before it.",
      example: "tagferry buffer export /var/lib/tagferry --undelivered > points.csv",
      run: async () => (await import("./inspect/buffer.ts")).bufferExport,
    },
  ]);

  const rejectCommands = [
    ["list", "reasons and counts"],
    ["retry", "send them once more, through the agent if it runs; exit status 1 where some are refused again"],
    ["drop", "delete them"],
  ] as const;
  line.group(
    "rejects",
    "points that the service refused for good",
    rejectCommands.map(([name, what]) => ({
      name,
      what,
      takes: name === "retry" ? [...configured, jsonOption] : [config, jsonOption],
      example: `tagferry rejects ${name} -c tagferry.yaml`,
      run: async () => (await import("./inspect/rejects.ts")).rejects[name],
    })),
  );

  line.add({
    name: "read",
    what: "read data back from the service; exit status 1 where an input cannot be read",
    takes: [
      "<input...>  Input IDs",
      line.configOption(),
      parsedOption("--since <time>  how far back", parseDurationArgument).default(3_600_000, "1h"),
      parsedOption("--until <time>  how far back the end lies (default: now)", parseDurationArgument),
      "--rollup <duration>  count, min, max, sum and avg of each PT1M, PT1H ..., or of the whole: window",
      ...formatOptions("ndjson", "plot"),
      parsedOption(
        "--width <letters>  width of a plot (default: that of the terminal)",
        numberFrom(20, 1_000, "a number of letters"),
      ),
    ],
    example: "tagferry read -c tagferry.yaml hall.north.temp --since 24h --rollup PT1H",
    run: async () => (await import("./data/read.ts")).read,
  });
}

export function addSignalsCommands(line: CommandLine): void {
  const config = line.configOption();
  line.group(
    "signals",
    "metadata of signals: compare with the service, save, publish. Needs the grant of the Admin namespace",
    [
      {
        name: "diff",
        what: "what differs between here and the service, and what is there and not configured",
        takes: [config, jsonOption],
        example: "tagferry signals diff -c tagferry.yaml",
        run: async () => (await import("./data/signals.ts")).diffSignals,
      },
      {
        name: "save",
        what: "save what is new or changed; exit status 1 where the service refuses some",
        takes: [config, "--dry-run  show what would be saved, and save nothing", jsonOption],
        example: "tagferry signals save -c tagferry.yaml --dry-run",
        run: async () => (await import("./data/signals.ts")).signalsSave,
      },
      {
        name: "publish",
        what: "make items of signals, or let items follow; what a person has edited stays",
        takes: [config, "--dry-run  show what would be published, and publish nothing", jsonOption],
        more: `Published is what service.signals.require asks for: name, engUnit and labels unless it says otherwise.
With publish: createOnly in the configuration items that exist are left as they are, else they are updated.`,
        example: "tagferry signals publish -c tagferry.yaml --dry-run",
        run: async () => (await import("./data/signals.ts")).signalsPublish,
      },
    ],
  );
}

export function addClusterCommands(line: CommandLine): void {
  const config = line.configOption("configuration of any agent of the cluster");
  const more = "The order lies in the cluster: it needs no running agent here, and outlasts restarts.";
  line.group(
    "cluster",
    "the agents that share an integration: which one delivers, which reads each source, and commands to change that",
    [
      {
        name: "status",
        what: "the agents, which of them delivers, and which reads each shared source; takes up to 6 s",
        takes: [config, jsonOption],
        example: "tagferry cluster status -c tagferry.yaml",
        run: async () => (await import("./cluster/cluster.ts")).clusterStatus,
      },
      {
        name: "drain",
        what: "let the other agents deliver, and read the sources that they can read, until it is undone",
        takes: ["<node>  agent.name", config, "--undo  let it take part again", jsonOption],
        more: `${more} If no other agent is alive and not drained, the agent goes on.`,
        example: "tagferry cluster drain gw1",
        run: async () => (await import("./cluster/cluster.ts")).drain,
      },
      {
        name: "move",
        what: "let an agent read a source while it runs, whatever run of the source says, until it is undone",
        takes: [
          "<source>  name of the source",
          "[node]  agent.name; not with --undo",
          config,
          "--undo  apply run of the source again",
          jsonOption,
        ],
        more,
        example: "tagferry cluster move line3 gw2",
        run: async () => (await import("./cluster/cluster.ts")).move,
      },
      {
        name: "remove",
        what: "forget an agent that will not come back; the points that it passed to the cluster are delivered",
        takes: ["<node>  agent.name", config, jsonOption],
        example: "tagferry cluster remove gw3",
        run: async () => (await import("./cluster/cluster.ts")).remove,
      },
    ],
  );
}
