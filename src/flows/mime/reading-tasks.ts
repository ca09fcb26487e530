import type { Invitation } from "../../core/messages/invitation.ts";
import type { Clock } from "../../core/time/clock.ts";
import { partBytes } from "../../mail/reading/parse.ts";
import { type AnswerToGive, answerInvitation, readInvitation } from "../../mail/reading/invitation.ts";
import { readReports } from "../../mail/reports/read-reports.ts";
import type { AggregateReport } from "../../mail/reports/report.ts";
import { type Inspection, inspectHeader, inspectMail, type MailToInspect } from "./inspect.ts";
import { NOTHING_REPORTED, type ReadReport, type ReportToRead, readReport } from "./read-report.ts";
import {
  readSubmitted,
  type SubmittedParts,
  type SubmittedToRead,
  unreadSubmitted,
} from "./read-submitted.ts";
import type { HashedBody } from "./inspect.ts";
import type { AuthDeps } from "../../mail/auth/authenticate.ts";

/** An attachment of a message, by its position. */
export interface PartToRead {
  raw: Uint8Array;
  ord: number;
}

/** The bytes are null if the message has no attachment at that position. */
export type ReadPart = { bytes: Uint8Array | null };

/** The tasks of worker threads that read received and submitted messages, by kind: the input and the result. */
export interface Readings {
  mail: { asked: MailToInspect; found: Inspection };
  header: { asked: MailToInspect; found: Inspection };
  report: { asked: ReportToRead; found: ReadReport };
  /** Reports about all mail of a day: DMARC and TLS. */
  aggregate: { asked: { raw: Uint8Array }; found: { reports: AggregateReport[] } };
  attachment: { asked: PartToRead; found: ReadPart };
  /** A calendar object, and the answer to make if one is given. */
  invitation: {
    asked: { raw: Uint8Array; answer: AnswerToGive | null };
    found: { invitation: Invitation | null; reply: string | null };
  };
  submitted: { asked: SubmittedToRead; found: SubmittedParts<HashedBody> };
}

export type ReadingKind = keyof Readings;
export type Asked<Kind extends ReadingKind> = { kind: Kind } & Readings[Kind]["asked"];
export type AnyAsked = { [Kind in ReadingKind]: Asked<Kind> }[ReadingKind];
export type Found<Kind extends ReadingKind> = Readings[Kind]["found"];

/**
 * Runs a reading task on a worker thread. Resolves with null if too many messages wait. Rejects only because of an internal
 * failure.
 */
export type Inspect = <Kind extends ReadingKind>(asked: Asked<Kind>) => Promise<Found<Kind> | null>;

export interface ReadingDeps extends AuthDeps {
  clock: Clock;
}

interface Reading<Kind extends ReadingKind> {
  read: (deps: ReadingDeps, asked: Readings[Kind]["asked"]) => Promise<Found<Kind>>;
  /** Returns the result for a message that could not be read in time, or a cheaper task to run instead. Throws if there is neither. */
  unread: (asked: Readings[Kind]["asked"]) => Found<Kind> | Asked<"header">;
}

const READINGS: { readonly [Kind in ReadingKind]: Reading<Kind> } = {
  mail: { read: inspectMail, unread: (asked) => ({ ...asked, kind: "header" }) },
  header: { read: inspectHeader, unread: () => unreadable("the header of a message cannot be read") },
  report: { read: readReport, unread: () => NOTHING_REPORTED },
  aggregate: {
    async read(_, { raw }) {
      return { reports: await readReports(raw) };
    },
    unread: () => ({ reports: [] }),
  },
  attachment: {
    async read(_, { raw, ord }) {
      return { bytes: await partBytes(raw, ord) };
    },
    unread: () => unreadable("a message cannot be read for its attachment"),
  },
  invitation: {
    async read(_, { raw, answer }) {
      const reply = answer === null ? null : answerInvitation(raw, answer);
      return { invitation: readInvitation(raw), reply };
    },
    unread: () => ({ invitation: null, reply: null }),
  },
  // It is sent as it is, whether we can show it or not.
  submitted: { read: (_, asked) => readSubmitted(asked), unread: unreadSubmitted },
};

function unreadable(message: string): never {
  throw new Error(message);
}

/** Runs a reading task, which blocks the thread. */
export function runReading<Kind extends ReadingKind>(
  deps: ReadingDeps,
  asked: Asked<Kind>,
): Promise<Found<Kind>> {
  return READINGS[asked.kind].read(deps, asked);
}

/**
 * Returns the result for a message that stalled or crashed its thread twice, or the task to run instead. Throws if there is
 * neither.
 */
export function resultIfUnreadable(asked: AnyAsked): Found<ReadingKind> | Asked<"header"> {
  // Each entry takes the input of its kind.
  const row = READINGS[asked.kind] as { unread: (asked: AnyAsked) => Found<ReadingKind> | Asked<"header"> };
  return row.unread(asked);
}
