// What the options of a source tell about the protection of its connection.
import type { SecurityFinding } from "../../../core/commissioning.ts";
import { leavesMachine } from "../../../lib/loopback.ts";
import type { MqttOptions } from "./options.ts";

/** As `Driver.findings`. */
export function connectionFindings({ url, verify }: Pick<MqttOptions, "url" | "verify">): readonly SecurityFinding[] {
  if (/^(mqtts|wss):/.test(url)) return [tlsFinding(verify)];
  if (!leavesMachine(url)) return [{ state: "good", message: "not encrypted, and it does not leave this machine" }];
  return [{ state: "weak", message: "not encrypted", remedy: "mqtts:// or wss:// where the broker offers it" }];
}

function tlsFinding(verify: MqttOptions["verify"]): SecurityFinding {
  if (verify === "none")
    return {
      state: "weak",
      message: "TLS, but the certificate of the broker is not verified",
      remedy: "verify: full, with caFile",
    };
  return {
    state: "good",
    message: verify === "ca" ? "TLS; the issuer is verified, the name is not" : "TLS; issuer and name are verified",
  };
}
