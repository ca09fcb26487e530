import type { PushDeps } from "../flows/notify/push.ts";
import { LARGE_MAIL_SEATS, RENDERING_SEATS, Seats } from "../flows/send/seats.ts";
import type { CustodyStatus } from "../flows/send/verdict.ts";
import { recheckDue } from "../flows/verify/recheck.ts";
import { post } from "../net/post.ts";
import type { ObjectReader } from "../store/contents/content-read.ts";
import { deleteOldAnswers } from "../store/idempotency.ts";
import { openOutbound } from "./delivery.ts";
import type { Ground } from "./ground.ts";
import { domainDeps, type HttpParts } from "./http.ts";
import { storageChores } from "./storage-chores.ts";
import type { WorkerDeps } from "./workers.ts";

/** Domains checked in one turn of the chores at most. */
const DOMAINS_PER_TURN = 50;

/** Idempotent answers past their 24 hours deleted in one turn of the chores at most. */
const ANSWERS_PER_TURN = 500;

/** Share of a retry delay by which it varies, so that what failed together does not come back together. */
const RETRY_JITTER = 0.2;

/** What the workers are started with. */
export function workerDeps(ground: Ground, parts: HttpParts): WorkerDeps {
  const { config, clock, db, queue, instance } = ground;
  const { objects } = parts;
  const verification = domainDeps(parts);
  const recheckDomains = {
    name: "domain-checks",
    turn: async () => void (await recheckDue(verification, DOMAINS_PER_TURN)),
  };
  const forgetAnswers = {
    name: "idempotent-answers",
    turn: async () => void (await deleteOldAnswers(db, clock.now(), ANSWERS_PER_TURN)),
  };
  const { findPassage, custody } = openOutbound(config, ground);
  const common = commonDeps(ground, objects);
  return {
    db,
    clock,
    queue,
    config,
    instance,
    transmit: transmitDeps(ground, common, custody),
    findPassage,
    push: pushDeps(ground, common),
    chores: [recheckDomains, forgetAnswers, ...storageChores(config, { db, clock, objects }, ground.store)],
    turnFailures: ground.metrics.turnFailures,
  };
}

/** What both kinds of work need. */
function commonDeps({ db, clock, queue, instance, keys }: Ground, objects: ObjectReader | null) {
  return { db, clock, queue, objects, instanceId: instance.id, boxKey: keys.box, random: Math.random };
}

type Common = ReturnType<typeof commonDeps>;

function transmitDeps(
  { config, keys, metrics, renderer, memory, links }: Ground,
  common: Common,
  custody: CustodyStatus,
): WorkerDeps["transmit"] {
  return {
    ...common,
    custody,
    ...links,
    renderer,
    verpKey: keys.verp,
    memory,
    renderingSeats: new Seats(common.clock, RENDERING_SEATS),
    largeMailSeats: new Seats(common.clock, LARGE_MAIL_SEATS),
    capture: config.delivery === "capture",
    meter: metrics.transmit,
    retry: {
      schedule: { delaysSeconds: config.deliveryRetrySeconds, jitter: RETRY_JITTER },
      giveUpMs: config.deliveryGiveUpSeconds * 1000,
    },
  };
}

function pushDeps({ config, clock, resolver, metrics }: Ground, common: Common): PushDeps {
  return {
    ...common,
    post: (request) => post({ clock, resolver }, request),
    meter: metrics.push,
    policy: {
      delaysSeconds: config.webhookRetrySeconds,
      timeoutMs: config.webhookTimeoutSeconds * 1000,
      disableAfterMs: config.webhookDisableAfterSeconds * 1000,
      allowPrivate: config.allowPrivateWebhooks,
    },
  };
}
