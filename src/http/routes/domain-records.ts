import { type Static, Type } from "@sinclair/typebox";
import { notFound } from "../../core/errors.ts";
import { addOwnRecord } from "../../flows/zone/add-record.ts";
import { MAX_TEXT_OCTETS } from "../../flows/zone/own-records.ts";
import {
  deleteOwnRecord,
  listOwnRecords,
  OWN_RECORD_TYPES,
  type OwnRecord,
} from "../../store/domains/domain-records.ts";
import { getDomain } from "../../store/domains/domains.ts";
import type { Db } from "../../store/engine/client.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../routing/schemas.ts";

/** Shortest and longest TTL, seconds. */
const MIN_TTL_SECONDS = 60;
const MAX_TTL_SECONDS = 86_400;
const MAX_PRIORITY = 65_535;

const PRIORITY = Type.Integer({
  minimum: 0,
  maximum: MAX_PRIORITY,
  description: "Of MX records alone: the host with the lowest is tried first. 10 if left out.",
});
const Ttl = Type.Integer({
  minimum: MIN_TTL_SECONDS,
  maximum: MAX_TTL_SECONDS,
  examples: [3600],
  description: "Seconds for which resolvers keep the record. 3600 if left out.",
});
const CreateRecord = Type.Object({
  type: OneOf(OWN_RECORD_TYPES),
  name: Type.String({
    minLength: 1,
    maxLength: 255,
    examples: ["www.mail.example.com"],
    description: "The full name, at or below the domain. Its first label may be `*`.",
  }),
  value: Type.String({
    minLength: 1,
    maxLength: MAX_TEXT_OCTETS,
    examples: ["192.0.2.1"],
    description: 'An address, a name, or text. A CAA record is like `0 issue "letsencrypt.org"`.',
  }),
  ttl: Type.Optional(Ttl),
  priority: Type.Optional(PRIORITY),
});
const OwnRecordView = Type.Object(
  {
    id: Type.String(),
    type: OneOf(OWN_RECORD_TYPES),
    name: Type.String({ examples: ["www.mail.example.com"] }),
    value: Type.String({ examples: ["192.0.2.1"] }),
    ttl: Ttl,
    priority: Type.Optional(PRIORITY),
    createdAt: Timestamp,
  },
  { title: "DomainRecord" },
);

function showRecord({
  id,
  type,
  name,
  value,
  ttl,
  priority,
  createdAt,
}: OwnRecord): Static<typeof OwnRecordView> {
  const shown = { id, type, name, value, ttl, createdAt: showTime(createdAt) };
  return priority === null ? shown : { ...shown, priority };
}

/** Routes of the records that an owner has in the zone of a delegated domain. */
export function domainRecordRoutes({ db }: { db: Db }): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/domains/:id/records",
      operationId: "listDomainRecords",
      summary: "List your own records of a delegated domain, newest first",
      description: "The records that the service publishes for the domain are not among them.",
      scope: "domains:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(OwnRecordView) },
      async handle({ senderId, params, page }) {
        if ((await getDomain(db, senderId, params.id)) === null) throw notFound("domain");
        const { after, take, answer } = page();
        const records = await listOwnRecords(db, senderId, params.id, after, take);
        return ok(answer(records, showRecord, ({ id }) => id));
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/domains/:id/records",
      operationId: "createDomainRecord",
      stores: {},
      summary: "Add a record to a delegated domain",
      description:
        "The name server serves it within seconds. The domain must be delegated, and a record in the way of one of the service is refused: 409. A domain has at most 200 such records.",
      scope: "domains:write",
      examples: { body: { type: "A", name: "www.mail.example.com", value: "192.0.2.1", ttl: 3600 } },
      body: CreateRecord,
      answers: { 201: OwnRecordView },
      errors: ["conflict"],
      async handle({ senderId, params, body, now, record }) {
        let answer = created(undefined);
        const { type, name, value, ttl, priority } = body;
        await addOwnRecord(db, {
          senderId,
          domainId: params.id,
          type,
          name,
          value,
          ttl,
          priority,
          now,
          also(added) {
            answer = created(showRecord(added));
            return record(answer);
          },
        });
        return answer;
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/domains/:id/records/:recordId",
      operationId: "deleteDomainRecord",
      summary: "Delete one of your records of a domain",
      description: "Resolvers may keep it for its TTL.",
      scope: "domains:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (await deleteOwnRecord(db, senderId, params.id, params.recordId)) return noContent();
        throw notFound("record");
      },
    }),
  ];
}
