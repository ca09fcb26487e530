/** Eight providers, each with what a sender that obeys could do at best. */
import { MINUTE_MS, SECOND_MS } from "../../../src/core/time/units.ts";
import type { Behaviour } from "./provider-peer.ts";

/** A provider of the run. */
export interface PlayedProvider {
  name: string;
  hosts: readonly string[];
  domains: readonly string[];
  /** @param startedAt when the run began */
  behave(startedAt: number): Behaviour;
  /** Milliseconds in which a sender that obeys has delivered so many messages. */
  bestMs(messages: number): number;
}

const PER_MINUTE = 120;
const QUOTA_PER_MINUTE = 20;
const TSS04_MS = 12 * MINUTE_MS;
const S3150_MS = 45 * MINUTE_MS;
const GREY_MS = 5 * MINUTE_MS;
const MAX_SESSIONS = 2;
const TARPIT_MS = 2 * SECOND_MS;
const PACE_MS = SECOND_MS / 20;
const RANDOM_SHARE = 0.05;

const GMAIL =
  "421-4.7.28 Gmail has detected an unusual rate of email originating from your IP\r\n421 4.7.28 address. To protect our users from spam, email has been temporarily rate limited.";
const TSS04 =
  "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints";
const S3150 =
  "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).";
const CONNECTIONS = "421 4.7.0 too many concurrent SMTP connections from your address";
const GREY = "451 4.7.1 Greylisted, please try again in 300 seconds";
const BUSY = "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77714)";
const TROUBLE = "451 4.3.0 temporary failure";

/** Takes so many messages in each minute that slides. */
function window(most: number): (now: number) => boolean {
  let taken: number[] = [];
  return (now) => {
    taken = taken.filter((at) => at > now - MINUTE_MS);
    if (taken.length >= most) return false;
    taken.push(now);
    return true;
  };
}

const customers = Array.from({ length: 10 }, (_, nth) => `customer${nth}.test`);

export const PLAYED: readonly PlayedProvider[] = [
  {
    name: "rate window",
    // Not Google's, which take no mail without TLS.
    hosts: ["mx01.mail.icloud.com", "mx02.mail.icloud.com"],
    domains: ["rate.test"],
    behave() {
      const takes = window(PER_MINUTE);
      return { refuse: (stage, { now }) => (stage === "final" && !takes(now) ? GMAIL : null) };
    },
    bestMs: (messages) => (messages / PER_MINUTE) * MINUTE_MS,
  },
  {
    name: "TSS04",
    hosts: ["mta5.am0.yahoodns.net", "mta6.am0.yahoodns.net"],
    domains: ["tss.test"],
    behave: (startedAt) => ({
      refuse: (stage, { now }) => (stage === "mail" && now < startedAt + TSS04_MS ? TSS04 : null),
    }),
    bestMs: (messages) => 15 * MINUTE_MS + messages * PACE_MS,
  },
  {
    name: "S3150, then recovery",
    hosts: ["outlook-com.olc.protection.outlook.com"],
    domains: ["block.test"],
    behave: (startedAt) => ({
      refuse: (stage, { now }) => (stage === "mail" && now < startedAt + S3150_MS ? S3150 : null),
    }),
    bestMs: (messages) => 60 * MINUTE_MS + messages * PACE_MS,
  },
  {
    name: "connection limit",
    hosts: ["mx00.emig.gmx.net", "mx01.emig.gmx.net"],
    domains: ["sessions.test"],
    behave: () => ({
      refuse: (stage, { sessions }) => (stage === "banner" && sessions > MAX_SESSIONS ? CONNECTIONS : null),
    }),
    bestMs: (messages) => messages * PACE_MS,
  },
  {
    name: "greylist",
    hosts: ["mx.grey.test"],
    domains: ["grey.test"],
    behave() {
      const seen = new Map<string, number>();
      return {
        refuse(stage, { now, recipient }) {
          if (stage !== "rcpt") return null;
          const since = seen.get(recipient) ?? now;
          seen.set(recipient, since);
          return now - since < GREY_MS ? GREY : null;
        },
      };
    },
    bestMs: (messages) => GREY_MS + 2 * messages * PACE_MS,
  },
  {
    name: "tarpit",
    hosts: ["mx.tar.test"],
    domains: ["tar.test"],
    behave: () => ({ refuse: () => null, delayMs: TARPIT_MS }),
    bestMs: (messages) => (messages / 5) * 4 * TARPIT_MS,
  },
  {
    name: "quota of each domain",
    hosts: ["customer.mail.protection.outlook.com"],
    domains: customers,
    behave() {
      const windows = new Map(customers.map((domain) => [domain, window(QUOTA_PER_MINUTE)]));
      return {
        refuse(stage, { now, recipient }) {
          const [, domain = ""] = recipient.split("@");
          return stage === "rcpt" && windows.get(domain)?.(now) === false ? BUSY : null;
        },
      };
    },
    bestMs: (messages) => (messages / customers.length / QUOTA_PER_MINUTE) * MINUTE_MS,
  },
  {
    name: "random 4xx",
    hosts: ["mx.random.test"],
    domains: ["random.test"],
    behave: () => ({
      refuse: (stage) => (stage === "rcpt" && Math.random() < RANDOM_SHARE ? TROUBLE : null),
    }),
    bestMs: (messages) => MINUTE_MS + messages * PACE_MS,
  },
];
