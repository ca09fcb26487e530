/** Contacts of a table as a customer might bring it. */

/** The row of a contact. */
export interface ImportedContact {
  email: string;
  firstName: string;
  lastName: string;
  unsubscribed: boolean;
}

/** Rows generated at a time. */
const PIECE_ROWS = 500;

/** Returns the `n`-th contact. */
export function importedContact(n: number): ImportedContact {
  return {
    email: `person${n}@d${n % 997}.example`,
    firstName: `First${n % 5000}`,
    lastName: `Last${n % 7000}`,
    unsubscribed: n % 10 === 0,
  };
}

const encoder = new TextEncoder();

/** Makes the table of so many contacts while it is read, so that no process holds it. */
export async function* importedTable(rows: number): AsyncGenerator<Uint8Array> {
  yield encoder.encode("email,first_name,last_name,unsubscribed\n");
  for (let at = 0; at < rows; at += PIECE_ROWS) {
    const lines = Array.from({ length: Math.min(PIECE_ROWS, rows - at) }, (_, nth) => {
      const { email, firstName, lastName, unsubscribed } = importedContact(at + nth);
      return `${email},${firstName},${lastName},${unsubscribed}\n`;
    });
    yield encoder.encode(lines.join(""));
  }
}
