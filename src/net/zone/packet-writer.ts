/** RFC 1035 §4.1.4: a pointer has 14 bits. */
const MAX_POINTER = 0x3fff;
const POINTER = 0xc000;

/** Puts a packet together, each name written once and pointed to after that (RFC 1035 §4.1.4). */
export class PacketWriter {
  readonly #parts: Buffer[] = [];
  readonly #names = new Map<string, number>();
  #octets = 0;

  get octets(): number {
    return this.#octets;
  }

  put(octets: Buffer): void {
    this.#parts.push(octets);
    this.#octets += octets.length;
  }

  /** Notes a name that stands at `at`, and those that end it. */
  know(name: string, at: number): void {
    for (let rest = name; rest !== ""; ) {
      if (at <= MAX_POINTER && !this.#names.has(rest)) this.#names.set(rest, at);
      const dot = rest.indexOf(".");
      // An escaped octet is one on the wire: names with one are known whole, and never written by us.
      if (dot < 0 || rest.slice(0, dot).includes("\\")) return;
      at += dot + 1;
      rest = rest.slice(dot + 1);
    }
  }

  /** A name: its first labels as far as they are new, then a pointer or the root. */
  putName(name: string): void {
    const start = this.#octets;
    let rest = name;
    while (rest !== "" && !this.#names.has(rest)) {
      const dot = rest.indexOf(".");
      this.putString(Buffer.from(dot < 0 ? rest : rest.slice(0, dot)));
      rest = dot < 0 ? "" : rest.slice(dot + 1);
    }
    const known = this.#names.get(rest);
    this.know(name, start);
    this.put(known === undefined ? Buffer.alloc(1) : uint16(POINTER | known));
  }

  /** A label or a character-string: its length in one octet, then itself. */
  putString(octets: Buffer): void {
    this.put(Buffer.from([octets.length]));
    this.put(octets);
  }

  end(): Buffer {
    return Buffer.concat(this.#parts, this.#octets);
  }
}

/** Two octets. */
export function uint16(value: number): Buffer {
  const octets = Buffer.alloc(2);
  octets.writeUInt16BE(value);
  return octets;
}

/** Four octets. */
export function uint32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}
