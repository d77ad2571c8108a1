// Declares the commands about the agents of a cluster.
import { type CommandLine, jsonOption } from "./shared/arguments.ts";

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
