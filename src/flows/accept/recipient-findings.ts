import { type ReadItem, streamOf } from "../../core/messages/send-item.ts";
import { splitAddress } from "../../core/addresses.ts";
import { typingErrors } from "../../core/typing-errors.ts";
import { type Finding, warning } from "../../mail/text/findings.ts";

/** Domains of which people mistype the addresses most, each with many mailboxes. */
const LARGE_DOMAINS: readonly string[] = [
  "gmail.com",
  "googlemail.com",
  "outlook.com",
  "hotmail.com",
  "hotmail.co.uk",
  "hotmail.fr",
  "live.com",
  "yahoo.com",
  "yahoo.co.uk",
  "yahoo.fr",
  "icloud.com",
  "aol.com",
  "comcast.net",
  "proton.me",
  "gmx.de",
  "gmx.net",
  "web.de",
  "t-online.de",
  "orange.fr",
  "wanadoo.fr",
  "laposte.net",
  "libero.it",
];
/** Real domains that differ from those by one letter. */
const NEIGHBOURS: ReadonlySet<string> = new Set([
  "gmx.com",
  "gmx.at",
  "gmx.ch",
  "ymail.com",
  "mail.com",
  "email.com",
  "hotmail.ch",
  "yahoo.ca",
  "live.co",
  "hotmail.de",
  "hotmail.it",
  "hotmail.es",
  "hotmail.be",
  "yahoo.de",
  "yahoo.es",
  "yahoo.it",
  "aol.de",
]);
/** Shortest large domain that is compared: many real names differ from a shorter one by one letter. */
const MIN_COMPARED_CHARS = 8;
/** Mailboxes that belong to a role (RFC 2142), whose readers have not asked for bulk mail. */
const ROLES: ReadonlySet<string> = new Set(
  "abuse admin billing contact help hostmaster info mailer-daemon marketing noc noreply no-reply office postmaster root sales security support webmaster".split(
    " ",
  ),
);
/** Maximum number of findings of one kind. */
const MAX_OF_A_KIND = 10;

/** Returns the large domain that a domain was probably meant to be; null if there is none. */
export function meantDomain(domain: string): string | null {
  if (LARGE_DOMAINS.includes(domain) || NEIGHBOURS.has(domain)) return null;
  const compared = LARGE_DOMAINS.filter(({ length }) => length >= MIN_COMPARED_CHARS);
  return compared.find((large) => typingErrors(domain, large) === 1) ?? null;
}

/** Returns what may keep a message from some of its recipients. */
export function recipientFindings(item: ReadItem): Finding[] {
  const emails = [...item.to, ...(item.cc ?? []), ...(item.bcc ?? [])].map(({ email }) => email);
  const isBulk = streamOf(item) === "bulk";
  const mistyped = emails.flatMap((email) => {
    const meant = meantDomain(splitAddress(email)?.domain ?? "");
    return meant === null
      ? []
      : [
          warning(
            "mistyped_domain",
            `${email} looks like an address at ${meant}.`,
            "Ask for the address again.",
          ),
        ];
  });
  const roles = emails.flatMap((email) =>
    isBulk && ROLES.has(splitAddress(email)?.local.toLowerCase() ?? "")
      ? [
          warning(
            "role_address",
            `${email} is read by several people, who may report bulk mail as spam.`,
            "Leave it out, unless its owner asked for this mail.",
          ),
        ]
      : [],
  );
  return [...mistyped.slice(0, MAX_OF_A_KIND), ...roles.slice(0, MAX_OF_A_KIND)];
}
