// Parses a Dockerfile and carries out its last stage in a folder, for machines without an engine that builds images.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface Instruction {
  /** FROM, COPY, RUN … */
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  readonly from: string;
  readonly as: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** All stages with their instructions in order, without comments and line breaks. */
export function parseDockerfile(file: string): readonly Stage[] {
  const lines = readFileSync(file, "utf8").replace(/\\\n/g, " ").split("\n");
  const stages: { from: string; as: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const match = /^([A-Z]+)\s+(.*)$/.exec(line.trim());
    if (!match) continue;
    const [, name = "", text = ""] = match;
    if (name === "FROM") {
      const [, from = "", as] = /^(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?$/.exec(text) ?? [];
      stages.push({ from, as, instructions: [] });
    } else stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** What a container of the image starts with. */
export interface Image {
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workdir: string;
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

/** Carries out a stage in the folder `root`, which holds its base image. `sources` are the folders that COPY reads. */
export function carryOut(stage: Stage, root: string, sources: Readonly<Record<string, string>>): Image {
  const environment: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  const image = { environment, user: "0:0", workdir: "/" };
  const commands: Record<string, readonly string[]> = {};
  for (const { name, text } of stage.instructions) {
    if (name === "COPY") copy(text, root, sources);
    else if (name === "RUN") execFileSync("chroot", [root, "/bin/sh", "-ec", text], { stdio: "inherit" });
    else if (name === "ENV")
      for (const [, key = "", value = ""] of text.matchAll(/(\w+)=(\S+)/g)) environment[key] = value;
    else if (name === "USER") image.user = text;
    else if (name === "WORKDIR") image.workdir = text;
    else if (name === "ENTRYPOINT" || name === "CMD") commands[name] = words(text);
    else if (name === "HEALTHCHECK") commands[name] = words(text.slice(text.indexOf("CMD") + 3));
    else if (!["VOLUME", "EXPOSE", "STOPSIGNAL", "ARG"].includes(name)) throw new Error(`${name} is not known here`);
  }
  const { ENTRYPOINT = [], CMD = [], HEALTHCHECK = [] } = commands;
  return { ...image, command: [...ENTRYPOINT, ...CMD], healthcheck: HEALTHCHECK };
}

function copy(text: string, root: string, sources: Readonly<Record<string, string>>): void {
  const [, stage = "", from = "", to = ""] = /^(?:--from=(\S+)\s+)?(\S+)\s+(\S+)$/.exec(text) ?? [];
  const source = join(sources[stage] ?? "", from);
  const target = to.endsWith("/") ? join(root, to, basename(from)) : join(root, to);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, { recursive: statSync(source).isDirectory() });
}

function words(json: string): readonly string[] {
  const parsed: unknown = JSON.parse(json);
  return Array.isArray(parsed) ? parsed.map(String) : [];
}
