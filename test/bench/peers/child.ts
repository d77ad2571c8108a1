// A script of the bench in its own process. It sends one message when it is ready and one answer to each question.
// It ends when its parent does.
import { fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

export interface BenchChild extends AsyncDisposable {
  /** Its first message. */
  readonly ready: unknown;
  /** Rejects when the process ends before it answers, or does not answer within half a minute. */
  ask(question: string): Promise<unknown>;
}

export async function benchChild(script: string, args: readonly string[]): Promise<BenchChild> {
  const child = fork(script, args, { stdio: ["pipe", "ignore", "inherit", "ipc"] });
  const ended = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`${script} ended with ${code ?? signal}`)));
  });
  ended.catch(() => {});
  const waiting: ((answer: unknown) => void)[] = [];
  child.on("message", (answer) => waiting.shift()?.(answer));
  const next = async () => {
    const patience = new AbortController();
    const late = sleep(30_000, undefined, { signal: patience.signal }).then(() => {
      throw new Error(`${script} does not answer`);
    });
    try {
      return await Promise.race([new Promise<unknown>((resolve) => waiting.push(resolve)), ended, late]);
    } finally {
      patience.abort();
      late.catch(() => {});
    }
  };
  return {
    ready: await next(),
    ask(question) {
      const answer = next();
      child.send(question, () => {});
      return answer;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended.catch(() => {});
    },
  };
}
