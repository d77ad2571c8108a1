// What the status page shows of the data directory: refused points and certificates, as `rejects` and `trust` list them.
import { join, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { countRejects, RejectFiles } from "../../upload/delivery/reject-files.ts";
import type { DetailOptions } from "../../web/details.ts";
import { knownCertificates } from "./protocols.ts";

/** Of the files of refused points, which may be 32 MiB, the latest: some thousand points. */
const rejectBytes = 512 * 1024;

/** `file`: where `config` was read. */
export function pageDetails(file: string, { agent: { dataDir } }: Pick<Config, "agent">): DetailOptions {
  const rejects = new RejectFiles(join(dataDir, "upload"));
  return {
    configFile: resolve(file),
    rejects: () => countRejects(rejects.latest(rejectBytes)),
    certificates: () => knownCertificates(dataDir),
  };
}
