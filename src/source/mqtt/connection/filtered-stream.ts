// Puts the filter between the library's stream (TCP, TLS or WebSocket) and its parser.
import type { Writable } from "node:stream";
import type { MqttClient, StreamBuilder } from "mqtt";
import type { OversizeFilter } from "./oversize-filter.ts";

/**
 * Everything that `client` reads goes through `filter`. To be called before `client.connect()`. What the filter throws
 * ends the connection: `client.stream` emits it as an error.
 *
 * The library pipes its stream into a Writable that parses. A stream of our own between the two would cost a copy of the
 * queue and a turn per chunk; so the chunk is filtered where that Writable receives it.
 */
export function filterInput(client: MqttClient, filter: OversizeFilter): void {
  const open: StreamBuilder = client["streamBuilder"];
  client["streamBuilder"] = ((of) => {
    const stream = open(of);
    const pipe = stream.pipe.bind(stream);
    stream.pipe = (destination, options) => {
      const parser = destination as unknown as Writable; // the library's types know no methods of a destination
      const parse = parser._write.bind(parser);
      parser._write = (chunk: Buffer, encoding, done) => {
        let passed: Buffer;
        try {
          passed = filter.pass(chunk);
        } catch (error) {
          // `done` is not called: nothing after it can be understood.
          stream.destroy(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        if (passed.length === 0) done();
        else parse(passed, encoding, done);
      };
      return pipe(destination, options);
    };
    return stream;
  }) satisfies StreamBuilder;
}
