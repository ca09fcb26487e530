/** A table column: its heading and how to read a row's value. */
export interface Column {
  heading: string;
  text(row: Readonly<Record<string, unknown>>): string;
}

type Row = Readonly<Record<string, unknown>>;

/** Output of a command: text for people, or one JSON object per line for programs. */
export interface Output {
  /** Prints one thing: the object, or words about it. */
  record(value: Row, text: string): void;
  /** Prints a list: one object per line, or a table. */
  rows(rows: readonly Row[], columns: readonly Column[]): void;
  /** Prints lines that are the same in both forms. */
  plain(text: string): void;
  /** Prints a warning to standard error, in both forms. */
  warn(text: string): void;
}

const GAP = "  ";

/** Returns an output as JSON or as text. */
export function createOutput(
  json: boolean,
  write: { out(text: string): void; err(text: string): void },
): Output {
  const line = (text: string): void => write.out(`${text}\n`);
  return {
    record: (value, text) => line(json ? JSON.stringify(value) : printable(text)),
    rows(rows, columns) {
      if (json) for (const row of rows) line(JSON.stringify(row));
      else for (const text of table(rows, columns)) line(text);
    },
    plain: line,
    warn: (text) => write.err(`postrider: ${printable(text)}\n`),
  };
}

/**
 * Makes control characters visible, except our line ends and tabs. A name that a client chose must not move the
 * cursor of the operator's terminal (terminal escape injection).
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** Returns the column of a field: its value as text, and nothing for null. */
export function field(name: string, heading = name): Column {
  return { heading, text: (row) => textOf(row[name]) };
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(textOf).join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function table(rows: readonly Row[], columns: readonly Column[]): string[] {
  const cells = [
    columns.map(({ heading }) => heading),
    // A line break in a cell would begin another row.
    ...rows.map((row) => columns.map(({ text }) => printable(text(row)).replace(/[\t\n]/g, " "))),
  ];
  const widths = columns.map((_column, at) =>
    Math.max(...cells.map((line) => Bun.stringWidth(line[at] ?? ""))),
  );
  return cells.map((line) =>
    line
      .map((cell, at) => padded(cell, widths[at] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

function padded(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - Bun.stringWidth(cell)));
}
