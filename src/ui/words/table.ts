/** Begins a formula in a spreadsheet: mail of strangers must not run there (OWASP, CSV injection). */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string): string {
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns rows as CSV with headings (RFC 4180). */
export function tableText(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headings, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
