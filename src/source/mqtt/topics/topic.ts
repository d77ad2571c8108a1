// Sparkplug topics: `spBv1.0/<group>/<type>/<node>[/<device>]`. Pure.

const types = ["NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH"] as const;
export type MessageType = (typeof types)[number];

export interface SparkplugTopic {
  readonly type: MessageType;
  readonly group: string;
  readonly node: string;
  /** Empty for the node itself. */
  readonly device: string;
}

/** Brokers that know Sparkplug keep births under this prefix. */
const certificates = "$sparkplug/certificates/";

/** The parts of a topic that carries data of an edge node; undefined for any other, as STATE and commands. */
export function parseSparkplugTopic(topic: string): SparkplugTopic | undefined {
  const own = topic.startsWith(certificates) ? topic.slice(certificates.length) : topic;
  const [namespace, group, word, node, device = "", ...rest] = own.split("/");
  const type = types.find((each) => each === word);
  if (namespace !== "spBv1.0" || !group || !node || !type || rest.length > 0) return undefined;
  return type.startsWith("D") === (device !== "") ? { type, group, node, device } : undefined;
}

/** Whether it belongs to hosts: their state and their commands, which every host hears and none of which is data. */
export function isHostTopic(topic: string): boolean {
  return /^spBv1\.0\/(?:STATE(?:\/|$)|[^/]+\/[ND]CMD\/)/.test(topic);
}
