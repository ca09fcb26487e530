import { AppError } from "../../core/errors.ts";

/** Returns the 422 for a file that cannot be imported as a whole. @param row number in the file; undefined: all of it */
export function fileFault(message: string, row?: number): AppError {
  return new AppError("validation_error", row === undefined ? message : `Row ${row}: ${message}`, {
    param: row === undefined ? "" : `row ${row}`,
  });
}

/** A file that is no text in UTF-8, by its first octets. */
const BEGINNINGS: readonly [octets: readonly number[], fault: string][] = [
  [[0xff, 0xfe], "The file is UTF-16. Save it as UTF-8: in Excel, choose “CSV UTF-8”."],
  [[0xfe, 0xff], "The file is UTF-16. Save it as UTF-8: in Excel, choose “CSV UTF-8”."],
  [[0x50, 0x4b, 0x03, 0x04], "The file is a spreadsheet or an archive. Save the table as CSV in UTF-8."],
  [[0x1f, 0x8b], "The file is compressed. Send it uncompressed."],
];
const LATIN =
  "The file is not UTF-8. If it has accented letters, it is probably Latin-1 (Windows-1252): save it as UTF-8. In Excel, choose “CSV UTF-8”.";

/** Checks the octets of a file as they come. */
export interface Utf8Check {
  /** Throws 422 if the file is not UTF-8. */
  take(piece: Uint8Array): void;
  end(): void;
}

/** Makes the check of a file's encoding. */
export function checkUtf8(): Utf8Check {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (piece?: Uint8Array) => {
    try {
      return piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true });
    } catch {
      throw fileFault(LATIN);
    }
  };
  let begun = false;
  return {
    take(piece) {
      const fault = begun
        ? undefined
        : BEGINNINGS.find(([octets]) => octets.every((octet, at) => piece[at] === octet))?.[1];
      if (fault !== undefined) throw fileFault(fault);
      // UTF-16 without a mark has a NUL in each letter of English.
      if (piece.includes(0)) throw fileFault("The file contains NUL. If it is UTF-16, save it as UTF-8.");
      begun = true;
      decode(piece);
    },
    end: () => void decode(),
  };
}
