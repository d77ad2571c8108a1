// A tar archive of a few files, in the ustar format that everything unpacks (POSIX.1-1988). Pure.
//
// Each file: a header of 512 bytes (name, mode, size and time as octal text, checksum), then its bytes, padded with
// zeros to a multiple of 512. Two empty blocks end the archive. Names have at most 100 bytes, files less than 8 GiB.

interface TarFile {
  readonly name: string;
  readonly data: Uint8Array;
}

const blockBytes = 512;

/** `seconds`: when the files were made, since 1970. Throws `RangeError` where a name is too long. */
export function tar(files: readonly TarFile[], seconds: number): Buffer {
  const parts = files.flatMap(({ name, data }) => [
    header(name, data.length, seconds),
    data,
    Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function header(name: string, size: number, seconds: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  if (Buffer.byteLength(name) > 100) throw new RangeError(`too long for a tar archive: ${name}`);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${Math.floor(value).toString(8).padStart(digits, "0")}\0`, at);
  block.write(name, 0);
  octal(0o600, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(seconds, 136, 11);
  // The checksum is taken with blanks in its own place.
  block.write("        ", 148);
  block.write("0", 156);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
