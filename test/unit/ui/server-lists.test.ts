import { expect, test } from "bun:test";
import { PAGE_LANGUAGES as SERVED_LANGUAGES } from "../../../src/core/audience/page-texts.ts";
import { EVENT_TYPES as SERVED_TYPES } from "../../../src/core/messages/events.ts";
import { MESSAGE_STATUSES } from "../../../src/core/messages/states.ts";
import { NOTICE_KINDS as SERVED_KINDS } from "../../../src/core/notices/kinds.ts";
import { SCOPES as SERVED_SCOPES } from "../../../src/http/routing/scopes.ts";
import { EVENT_TYPES, NOTICE_KINDS, PAGE_LANGUAGES, SCOPES } from "../../../src/ui/api/server-lists.ts";
import { statusWords } from "../../../src/ui/words/status.ts";

test("the dashboard knows the server's scopes", () => {
  expect(SCOPES).toEqual(SERVED_SCOPES);
});

test("the dashboard knows the server's kinds of notices", () => {
  expect([...NOTICE_KINDS]).toEqual([...SERVED_KINDS]);
});

test("the dashboard knows the server's event types", () => {
  expect([...EVENT_TYPES].sort()).toEqual([...SERVED_TYPES].sort());
});

test("the dashboard knows the languages of the page of unsubscribe links", () => {
  expect(Object.keys(PAGE_LANGUAGES)).toEqual([...SERVED_LANGUAGES]);
});

test("the dashboard has words for each status of the server", () => {
  expect(MESSAGE_STATUSES.filter((status) => statusWords(status).word === status)).toEqual([]);
});
