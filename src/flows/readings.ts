import type { Clock } from "../core/clock.ts";
import { partBytes } from "../mail/reading/parse.ts";
import { type Inspection, inspectMail, type MailToInspect, uninspected } from "./receive/inspect.ts";
import { NOTHING_REPORTED, type ReadReport, type ReportToRead, readReport } from "./send/read-report.ts";
import type { AuthDeps } from "../mail/authenticate.ts";

/** An attachment of a mail: the one at that place. */
export interface PartToRead {
  raw: Uint8Array;
  ord: number;
}

/** Null where the mail has none at that place. */
export type ReadPart = { bytes: Uint8Array | null };

/** What is read of mail, by kind: what is asked, and what is found. Strangers write mail, and reading it takes time. */
export interface Readings {
  mail: { asked: MailToInspect; found: Inspection };
  report: { asked: ReportToRead; found: ReadReport };
  attachment: { asked: PartToRead; found: ReadPart };
}

export type ReadingKind = keyof Readings;
export type Asked<Kind extends ReadingKind> = { kind: Kind } & Readings[Kind]["asked"];
export type AnyAsked = { [Kind in ReadingKind]: Asked<Kind> }[ReadingKind];
export type Found<Kind extends ReadingKind> = Readings[Kind]["found"];

/**
 * Reads of a mail, somewhere where that holds nobody up. Null where too many mails wait already.
 * A rejection is trouble of ours.
 */
export type Inspect = <Kind extends ReadingKind>(asked: Asked<Kind>) => Promise<Found<Kind> | null>;

export interface ReadingDeps extends AuthDeps {
  clock: Clock;
}

interface Reading<Kind extends ReadingKind> {
  read: (deps: ReadingDeps, asked: Readings[Kind]["asked"]) => Promise<Found<Kind>>;
  /** What is said of a mail that could not be read in any time. Throws where nothing can be. */
  unread: (host: string, asked: Readings[Kind]["asked"]) => Found<Kind>;
}

const READINGS: { readonly [Kind in ReadingKind]: Reading<Kind> } = {
  mail: { read: inspectMail, unread: uninspected },
  report: { read: (_, asked) => readReport(asked), unread: () => NOTHING_REPORTED },
  attachment: {
    async read(_, { raw, ord }) {
      return { bytes: await partBytes(raw, ord) };
    },
    unread() {
      throw new Error("a mail cannot be read for its attachment");
    },
  },
};

/** Does a reading. It holds the thread for as long as that takes. */
export function read<Kind extends ReadingKind>(deps: ReadingDeps, asked: Asked<Kind>): Promise<Found<Kind>> {
  return READINGS[asked.kind].read(deps, asked);
}

/**
 * What there is to say without reading, in bounded time.
 * @param host our name in Authentication-Results
 */
export function unread<Kind extends ReadingKind>(host: string, asked: Asked<Kind>): Found<Kind> {
  return READINGS[asked.kind].unread(host, asked);
}
