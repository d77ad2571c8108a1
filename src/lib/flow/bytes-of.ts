/** All bytes of a stream. Undefined: there are more than `mostBytes`, and the rest is not read. */
export async function bytesOf(
  stream: AsyncIterable<Uint8Array | string>,
  mostBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > mostBytes) return undefined;
    chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  }
  return Buffer.concat(chunks);
}
