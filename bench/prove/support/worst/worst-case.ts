/** A reader, and a shape of input that is bad for it. */
export interface WorstCase {
  reader: string;
  shape: string;
  /** Bytes of the largest input that reaches the reader. */
  most: number;
  /** Makes an input of that many bytes; the function reads it once. */
  prepare(octets: number): () => unknown;
}

/** The cases of one reader: its shapes by name, each a function that makes an input of so many bytes. */
export function casesOf<Input>(
  reader: string,
  most: number,
  read: (input: Input) => unknown,
  shapes: Readonly<Record<string, (octets: number) => Input>>,
): WorstCase[] {
  return Object.entries(shapes).map(([shape, make]) => ({
    reader,
    shape,
    most,
    prepare(octets) {
      const input = make(octets);
      return () => read(input);
    },
  }));
}

/** A string of that many characters that repeats a piece. */
export function filled(piece: string, chars: number): string {
  const wanted = Math.max(0, Math.floor(chars));
  return piece.repeat(Math.ceil(wanted / piece.length)).slice(0, wanted);
}

/** Shapes that each repeat a piece between a beginning and an end, named as they are written. */
export function repeated(
  pieces: readonly string[],
  begin = "",
  end = "",
): Record<string, (octets: number) => string> {
  return Object.fromEntries(
    pieces.map((piece) => [
      JSON.stringify(piece),
      (octets: number) => `${begin}${filled(piece, octets - begin.length - end.length)}${end}`,
    ]),
  );
}

/** Shapes of text as shapes of bytes, one character a byte. */
export function asOctets(
  shapes: Readonly<Record<string, (octets: number) => string>>,
): Record<string, (octets: number) => Buffer> {
  return Object.fromEntries(
    Object.entries(shapes).map(([shape, make]) => [
      shape,
      (octets: number) => Buffer.from(make(octets), "latin1"),
    ]),
  );
}
