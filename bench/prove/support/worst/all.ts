/** Every reader of bytes that strangers write, with the shapes that are bad for it. */
import { CHECK_CASES } from "./checks.ts";
import { CONTROLS } from "./controls.ts";
import { JSON_CASES } from "./json.ts";
import { MAIL_CASES } from "./mail.ts";
import { REPORT_CASES } from "./reports.ts";
import { RESEND_CASES } from "./resend.ts";
import { TEXT_CASES } from "./texts.ts";
import { WIRE_CASES } from "./wire.ts";
import type { WorstCase } from "./worst-case.ts";

export const WORST_CASES: readonly WorstCase[] = [
  ...CONTROLS,
  ...JSON_CASES,
  ...MAIL_CASES,
  ...CHECK_CASES,
  ...REPORT_CASES,
  ...RESEND_CASES,
  ...TEXT_CASES,
  ...WIRE_CASES,
];
