// Whether the agent that runs with a configuration is losing sessions to other clients: no broker says who else uses a client
// identifier, and trying it would throw the agent out.
import { z } from "zod";
import type { Config } from "../../config/config.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { addressOf, askAgent } from "./agent-address.ts";

const answered = z.object({
  agent: z.object({ name: z.string() }),
  sources: z.array(
    z.object({
      name: z.string(),
      code: z.string().optional(),
      error: z.string().optional(),
      remedy: z.string().optional(),
    }),
  ),
});

/** The error of each source whose session another client took over lately, by the name of the source. Empty where no such agent runs. */
export async function runningTakeovers(
  { agent, http }: Pick<Config, "agent" | "http">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentError>> {
  if (http.listen.port === 0) return new Map();
  try {
    const status = answered.parse(await askAgent(addressOf(http.listen), "/api/status", signal));
    if (status.agent.name !== agent.name) return new Map();
    return new Map(
      status.sources.flatMap(({ name, code, error = "", remedy }) =>
        code === "SOURCE_TAKEN_OVER"
          ? [[name, new AgentError(code, error, { ...(remedy !== undefined && { hint: remedy }) })] as const]
          : [],
      ),
    );
  } catch (error) {
    if (isAgentError(error) || error instanceof z.ZodError) return new Map();
    throw error;
  }
}
