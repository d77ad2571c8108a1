// The safeguards of the buffer, each with what is left when it is taken out and the tests that then have to fail.
export interface Ablation {
  readonly safeguard: string;
  /** In `src/buffer/disk`. */
  readonly file: string;
  /** Found once in the file. */
  readonly code: string;
  readonly without: string;
  /** In `test/unit/buffer/disk`. */
  readonly test: string;
}

const states = "crash-states.test.ts";

export const ablations: readonly Ablation[] = [
  // Every sync of a file.
  {
    safeguard: "the sync of points",
    file: "segment-writer.ts",
    code: "    this.#file.sync();\n    this.#index.endOffset",
    without: "    this.#index.endOffset",
    test: states,
  },
  {
    safeguard: "the sync of a new segment's header",
    file: "segment-writer.ts",
    code: "        file.sync();\n        disk.syncFolder(folder);",
    without: "        disk.syncFolder(folder);",
    test: states,
  },
  {
    safeguard: "the sync of a seal",
    file: "segment-writer.ts",
    code: "      this.#file.sync();\n      segment.bytes",
    without: "      segment.bytes",
    test: states,
  },
  {
    safeguard: "the sync of what a start finds, before it is sealed",
    file: "segment-mending.ts",
    code: "      if (seal) file.sync();\n",
    without: "",
    test: "model.test.ts",
  },
  {
    safeguard: "the sync of what was mended",
    file: "segment-mending.ts",
    code: "      file.sync();\n      segment.bytes = end;",
    without: "      segment.bytes = end;",
    test: states,
  },
  {
    safeguard: "the sync of the state",
    file: "state-file.ts",
    code: "      file.sync();\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of a cold segment",
    file: "compactor.ts",
    code: "    file.sync();\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of FORMAT",
    file: "disk.ts",
    code: "    file.sync();\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of the bytes that try whether there is room",
    file: "full-disk.ts",
    code: "    file.sync();\n",
    without: "",
    test: "full-disk.test.ts",
  },
  // Every sync of a folder.
  {
    safeguard: "the sync of the folder for a new segment",
    file: "segment-writer.ts",
    code: "        disk.syncFolder(folder);\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of the folder for a new state",
    file: "state-file.ts",
    code: "    if (isNew) this.#disk.syncFolder(this.#folder);\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of the folder for a removed segment",
    file: "keeper.ts",
    code: "      disk.syncFolder(folder);\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of the folder for a cold segment",
    file: "compactor.ts",
    code: "    ground.disk.syncFolder(folder);\n",
    without: "",
    test: states,
  },
  {
    safeguard: "the sync of quarantine",
    file: "quarantine.ts",
    code: "  disk.syncFolder(`${folder}/${folderName}`);\n",
    without: "",
    test: "store.test.ts",
  },
  {
    safeguard: "the sync above a new folder",
    file: "node-disk.ts",
    code: "        sync(dirname(made));\n",
    without: "",
    test: "node-disk.test.ts",
  },
  // What a failed write or sync leaves.
  {
    safeguard: "the loop for short writes",
    file: "disk.ts",
    code: "  while (done < bytes.length) {",
    without: "  if (done < bytes.length) {",
    test: "faults.test.ts",
  },
  {
    safeguard: "giving up a descriptor that failed",
    file: "segment-log.ts",
    code: "        this.#giveUp();\n",
    without: "",
    test: "faults.test.ts",
  },
  {
    safeguard: "not to trust what a start could not sync",
    file: "segment-opening.ts",
    code: "      segment.needsMending = true;\n",
    without: "",
    test: "faults.test.ts",
  },
  // Who may write, and what must be known of it.
  {
    safeguard: "a shared lock is none to write under",
    file: "store-server.ts",
    code: "this.#lock.exclusive ? ground.disk : readOnlyDisk(ground.disk)",
    without: "ground.disk",
    test: "lock.test.ts",
  },
  {
    safeguard: "the state knows of a new segment",
    file: "segment-log.ts",
    code: "    keeper.persist(now);\n    return this.#writer;",
    without: "    return this.#writer;",
    test: "store.test.ts",
  },
  // Checksums and the salt.
  {
    safeguard: "the checksum of a payload",
    file: "record.ts",
    code: "end <= bytes.length && sum(bytes, start, end) === header.payloadChecksum",
    without: "end <= bytes.length",
    test: "damage.test.ts",
  },
  {
    safeguard: "the checksum of a record's header",
    file: "record.ts",
    code: "  if (view.getUint32(at + 52, true) !== sum(bytes, at, at + 52)) return undefined;\n",
    without: "",
    test: "damage.test.ts",
  },
  {
    safeguard: "the checksum of a segment's header",
    file: "segment-header.ts",
    code: '  if (view.getUint32(4_092, true) !== crc32c(bytes, 0, 4_092)) return "damaged";\n',
    without: "",
    test: "bit-flips.test.ts",
  },
  {
    safeguard: "the checksum of the state",
    file: "state-file.ts",
    code: '  if (view.getUint32(20, true) !== crc32c(bytes, headerBytes, end)) return "damaged";\n',
    without: "",
    test: "damage.test.ts",
  },
  {
    safeguard: "the checksum of FORMAT",
    file: "format-file.ts",
    code: ' || match[4] !== checksumText(match[1] ?? "")',
    without: "",
    test: "damage.test.ts",
  },
  {
    safeguard: "the salt of a segment",
    file: "record.ts",
    code: "  if (salt !== undefined && echo !== salt) return undefined;\n",
    without: "",
    test: "damage.test.ts",
  },
  {
    safeguard: "cutting off all of a write with holes",
    file: "segment-index.ts",
    code: "      index.cut(lastGroup, options.first);\n",
    without: "",
    test: "damage.test.ts",
  },
  {
    safeguard: "a damaged record of a write belongs to that write",
    file: "segment-index.ts",
    code: "    lastGroup = at - header.groupOffset;\n",
    without: "    if (isPayloadWhole(bytes, at, header, checksum)) lastGroup = at - header.groupOffset;\n",
    test: "damage.test.ts",
  },
  // The order of things.
  {
    safeguard: "the state goes before the removal of what it says is settled",
    file: "keeper.ts",
    code: "    try {\n      this.#write(now);\n    } catch (error) {",
    without: "    this.#remove();\n    try {\n      this.#write(now);\n    } catch (error) {",
    test: states,
  },
  {
    safeguard: "the state goes before a cold segment takes the place of the hot one",
    file: "compactor.ts",
    code: '    if (!keeper.persist(now)) throw new Error("the state could not be written");\n',
    without: "",
    test: states,
  },
  {
    safeguard: "a cold segment is another generation",
    file: "compactor.ts",
    code: "segment.header.generation + 1",
    without: "segment.header.generation",
    test: states,
  },
];
