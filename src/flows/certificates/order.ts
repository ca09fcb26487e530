import type { Key } from "../../core/crypto/key-ring.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import { certificateId } from "../../net/acme/certificate-id.ts";
import { certificateRequest, newCertificateKey } from "../../net/acme/csr.ts";
import { type AccountKey, challengeRecord } from "../../net/acme/jws.ts";
import type { Authorization, Order } from "../../net/acme/objects.ts";
import { AcmeError } from "../../net/acme/problem.ts";
import { readChain } from "../../smtp/listener/certificate.ts";
import { type CertificateRecord, challengesOf, insertChallenge } from "../../store/domains/certificates.ts";
import { countDomainOrder } from "../../store/domains/domain-certificates.ts";
import { type AccountDeps, openAccount } from "./account.ts";
import { challengePlace, ORDER_WINDOW_MS } from "./domain-hosts.ts";
import { checkChain } from "./issued.ts";
import { pollPauseMs } from "./renewal-times.ts";

/** Time after which every process of ours answers with a record that was published. It is longer than zones keep one. */
export const CHALLENGE_SETTLE_MS = 2000;
/** `CHALLENGE_SETTLE_MS` if there are secondaries, which must copy the zone first. */
export const SECONDARIES_SETTLE_MS = 20_000;
/** Time after which every process uses a new certificate. It is longer than their pauses between looks for one. */
export const IN_USE_MS = MINUTE_MS;
/** Time for a CA to decide about an order. */
const MAX_ORDER_AGE_MS = HOUR_MS;
/** Difference of the clocks with which no certificate is ordered: its times would mean nothing. */
const MAX_CLOCK_SKEW_MS = HOUR_MS;

export interface OrderDeps extends AccountDeps {
  serviceDomain: string;
  /** Time after which every name server has a record that was published. */
  settleMs: number;
  /** Saves a claimed certificate in the middle of a turn. Throws if the claim is over. */
  keep: (record: CertificateRecord) => Promise<CertificateRecord>;
}

/**
 * Takes the order of a certificate one step on, and begins it if there is none. Each step is saved before the next, and
 * can be done again. After a crash the next turn reads the state of the order from the CA.
 * @returns the record, due again when there may be more to do
 * @throws AcmeError
 */
export async function advanceOrder(deps: OrderDeps, record: CertificateRecord): Promise<CertificateRecord> {
  const account = await openAccount(deps);
  const keyed = record.sealedOrderKey === null ? await deps.keep(await withKey(deps, record)) : record;
  const { current, order } = await openOrder(deps, account, keyed);
  const age = deps.clock.now() - (current.order?.startedAt ?? 0);
  switch (order.status) {
    case "pending":
      await answerChallenges(deps, account, current, order);
      break;
    case "ready":
      await handIn(deps, account, current, order);
      break;
    case "processing":
      break;
    case "valid":
      return await finish(deps, account, current, order);
    case "invalid":
      throw new AcmeError(await whyInvalid(deps, account, order), { refused: true });
  }
  if (age > MAX_ORDER_AGE_MS)
    throw new AcmeError("the CA has not decided about the order for an hour", { refused: true });
  return { ...current, dueAt: deps.clock.now() + pollPauseMs(age, order.retryAfterMs) };
}

/** The key of the certificate before is used again, so that messages can count on a renewed one at once. */
async function withKey({ boxKey }: OrderDeps, record: CertificateRecord): Promise<CertificateRecord> {
  const sealedOrderKey = record.issued?.sealedKey ?? (await newKey(boxKey, record));
  return { ...record, sealedOrderKey };
}

/** Makes a sealed key for a certificate. */
export async function newKey(boxKey: Key, { domainId }: CertificateRecord): Promise<string> {
  return seal(boxKey, await newCertificateKey(domainId === null ? "rsa" : "p256"));
}

/** Reads the pending order from the CA, or begins one. If the CA no longer has it, begins another. */
async function openOrder(
  deps: OrderDeps,
  account: AccountKey,
  record: CertificateRecord,
): Promise<{ current: CertificateRecord; order: Order }> {
  if (record.order !== null) {
    const order = await deps.client.order(account, record.order.url).catch((error: unknown) => {
      if (error instanceof AcmeError && error.refused && isOfOrder(error)) return null;
      throw error;
    });
    if (order !== null) return { current: record, order };
  }
  requireClock(deps);
  const startedAt = deps.clock.now();
  await deps.db.write(countDomainOrder(record.id, startedAt, startedAt - ORDER_WINDOW_MS));
  const order = await beginOrder(deps, account, record);
  return { current: await deps.keep({ ...record, order: { url: order.url, startedAt } }), order };
}

/** Returns true if a refusal concerns the order itself, not the account or the number of requests. */
function isOfOrder({ type }: AcmeError): boolean {
  return type === "malformed" || type === null;
}

/** Throws if the clocks differ so far that the times of a certificate would mean nothing. */
function requireClock({ client }: OrderDeps): void {
  const ahead = client.clockAhead() ?? 0;
  if (Math.abs(ahead) <= MAX_CLOCK_SKEW_MS) return;
  const hours = Math.round(Math.abs(ahead) / HOUR_MS);
  throw new AcmeError(
    `the clock of this machine is ${hours} hours ${ahead > 0 ? "ahead of" : "behind"} the CA's: set it, then certificates are ordered again`,
    { refused: true },
  );
}

/** If the CA does not take the name of the certificate before, orders without it (RFC 9773 §5). */
async function beginOrder(
  { client }: OrderDeps,
  account: AccountKey,
  { names, issued }: CertificateRecord,
): Promise<Order> {
  const replaces = issued === null ? null : certificateId(readChain(issued.chain)[0].raw);
  try {
    return await client.newOrder(account, { names, replaces });
  } catch (error) {
    if (replaces === null || !(error instanceof AcmeError) || !error.refused || error.type === "rateLimited")
      throw error;
    return client.newOrder(account, { names, replaces: null });
  }
}

/** Publishes the answers to the challenges that are open, and tells the CA of those that every name server has by now. */
async function answerChallenges(
  { db, clock, client, settleMs, serviceDomain }: OrderDeps,
  account: AccountKey,
  certificate: CertificateRecord,
  order: Order,
): Promise<void> {
  const published = await challengesOf(db, certificate.id);
  for (const url of order.authorizations) {
    const { name, challenge } = openChallenge(await client.authorization(account, url));
    if (challenge === null) continue;
    const at = challengePlace(certificate, name, serviceDomain);
    const value = challengeRecord(challenge.token, account.jwk);
    const record = published.find((one) => one.name === at && one.value === value);
    if (record === undefined) await db.write([insertChallenge(certificate.id, at, value, clock.now())]);
    else if (clock.now() - record.publishedAt >= settleMs)
      await client.answerChallenge(account, challenge.url);
  }
}

/** Returns the challenge that waits for us; null if the name is proven or the CA is checking it. */
function openChallenge({
  name,
  status,
  challenge,
}: Authorization): Pick<Authorization, "name" | "challenge"> {
  if (status === "pending" && challenge === null)
    throw new AcmeError(`the CA offers no dns-01 challenge for ${name}`, { refused: true });
  const isOpen = status === "pending" && challenge?.status === "pending";
  return { name, challenge: isOpen ? challenge : null };
}

async function handIn(
  { client, boxKey }: OrderDeps,
  account: AccountKey,
  { names, sealedOrderKey }: CertificateRecord,
  order: Order,
): Promise<void> {
  const request = certificateRequest(unseal(boxKey, sealedOrderKey ?? ""), names);
  await client.finalize(account, order.finalize, request);
}

/** Downloads the certificate. The next turn computes when to renew it. */
async function finish(
  { client, boxKey, clock }: OrderDeps,
  account: AccountKey,
  record: CertificateRecord,
  order: Order,
): Promise<CertificateRecord> {
  const { sealedOrderKey: sealedKey, names } = record;
  if (order.certificate === null || sealedKey === null)
    throw new AcmeError("the CA names no URL for the certificate");
  const chain = await client.download(account, order.certificate);
  const now = clock.now();
  const { notAfter } = checkChain(chain, unseal(boxKey, sealedKey), names, now);
  return {
    ...record,
    issued: { chain, sealedKey, issuedAt: now, notAfter, servedFrom: servedFrom(record, sealedKey, now) },
    renewAt: null,
    order: null,
    sealedOrderKey: null,
    dueAt: now,
    failures: 0,
    lastError: null,
  };
}

/** A renewal with the same key changes nothing for peers that know the key. */
function servedFrom({ issued }: CertificateRecord, sealedKey: string, now: number): number {
  return issued !== null && issued.sealedKey === sealedKey ? issued.servedFrom : now + IN_USE_MS;
}

/** Returns why an order failed: its own problem, or those of its names. */
async function whyInvalid({ client }: OrderDeps, account: AccountKey, order: Order): Promise<string> {
  const problems: string[] = [];
  for (const url of order.authorizations) {
    const { name, status, challenge } = await client.authorization(account, url);
    const text = challenge?.problem?.text;
    if (status !== "valid" && text !== undefined) problems.push(`${name}: ${text}`);
  }
  if (problems.length === 0) problems.push(order.problem?.text ?? "the CA does not say why");
  return `the CA refused the order: ${problems.join("; ")}`;
}
