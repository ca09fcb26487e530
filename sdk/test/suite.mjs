// The tests of the client, for every runtime: no framework, no API of one runtime alone.

/** What the tests need: a service, and a server that fails in known ways. See test/contract/sdk.test.ts. */
/** @typedef {{ url: string, projectKey: string, accountKey: string, senderId: string, domain: string, faulty: string }} Scene */

/** Tries until a message is delivered. A client can only poll. */
const MAX_POLLS = 300;

/** Returns the result of each test: its name, and its error if it failed. */
export async function run(sdk, scene) {
  const results = [];
  for (const [name, test] of Object.entries(tests)) {
    const error = await test(sdk, scene).then(
      () => null,
      (cause) => String(cause?.stack ?? cause),
    );
    results.push(error === null ? { name } : { name, error });
  }
  return results;
}

function equal(actual, expected) {
  const [seen, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (seen !== wanted) throw new Error(`${seen} is not ${wanted}`);
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

const clientOf = ({ Postrider }, { url, projectKey }, more = {}) =>
  new Postrider({ apiKey: projectKey, baseUrl: url, ...more });

/** A client of the server that fails. It answers `{ tries, keys }`: the tries of this scenario, and their idempotency keys. */
const failing = ({ Postrider }, { faulty }, scenario, more = {}) =>
  new Postrider({ apiKey: "k", baseUrl: `${faulty}/${scenario}/${crypto.randomUUID()}`, ...more });

const item = ({ domain }, more = {}) => ({
  from: `Ana <hello@onboarding.${domain}>`,
  to: `delivered@simulator.${domain}`,
  subject: "Hello",
  text: "It works.",
  ...more,
});

const tests = {
  async "sends a message and follows it"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const sent = await client.emails.send(item(scene));
    equal(sent.status, "queued");
    for (let polls = 0; ; polls++) {
      const message = await client.emails.get(sent.id);
      if (message.status === "delivered") break;
      if (polls === MAX_POLLS) throw new Error(`it is ${message.status}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const raw = new TextDecoder().decode(await client.emails.raw(sent.id));
    equal(/^Subject: Hello/m.test(raw), true);
  },

  async "sends a batch in which each item has a result"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const { data } = await client.emails.sendBatch([item(scene), { ...item(scene), from: "x" }]);
    equal([typeof data[0].id, data[1].error.code], ["string", "invalid_from"]);
  },

  async "sends without being awaited"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const email = `${crypto.randomUUID()}@example.com`;
    client.contacts.create({ email }).catch(() => undefined);
    for (let polls = 0; polls < MAX_POLLS; polls++)
      if ((await client.contacts.list({ q: email })).data.length === 1) return;
    throw new Error("no contact");
  },

  async "walks through all pages of a list"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const word = crypto.randomUUID();
    for (let count = 0; count < 5; count++)
      await client.contacts.create({ email: `${count}-${word}@example.com` });
    const seen = [];
    for await (const { email } of client.contacts.list({ q: word, limit: 2 })) seen.push(email[0]);
    equal(seen, ["4", "3", "2", "1", "0"]);
    const sizes = [];
    for await (const page of client.contacts.list({ q: word, limit: 2 }).pages())
      sizes.push(page.data.length);
    equal(sizes, [2, 2, 1]);
    equal((await client.contacts.list({ q: word, limit: 2 })).data.length, 2);
    for await (const contact of client.contacts.list({ q: word })) await client.contacts.delete(contact.id);
    equal((await client.contacts.list({ q: word })).data, []);
  },

  async "walks through a list that has no pages"(sdk, scene) {
    for await (const _ of clientOf(sdk, scene).inboxes.list()) throw new Error("there is no inbox");
  },

  async "throws what the service says"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const error = await failure(client.emails.send({ ...item(scene), to: "x", html: 1 }));
    equal(error instanceof sdk.PostriderError, true);
    const { name, status, type, issues, requestId } = error;
    equal([name, status, type, issues.length], ["PostriderError", 422, "validation_error", 2]);
    equal(requestId.startsWith("req_"), true);
    const refused = await failure(client.emails.send({ ...item(scene), from: "ana@other.example" }));
    equal([refused.status, refused.code, refused.param], [403, "domain_not_verified", "from.email"]);
    equal((await failure(clientOf(sdk, scene, { apiKey: "no" }).account.me())).type, "authentication_error");
  },

  async "names the project of a client or of one request"(sdk, scene) {
    const { accountKey: apiKey, senderId } = scene;
    const without = await failure(clientOf(sdk, scene, { apiKey }).contacts.list());
    equal(without.param, "X-Service-Product");
    equal(
      (await clientOf(sdk, scene, { apiKey }).contacts.list({}, { project: senderId })).data.length >= 0,
      true,
    );
    equal((await clientOf(sdk, scene, { apiKey, project: senderId }).account.me()).project.id, senderId);
  },

  async "returns the raw response if asked"(sdk, scene) {
    const { data, response } = await clientOf(sdk, scene)
      .account.me({ headers: { "X-Request-Id": "mine" } })
      .withResponse();
    equal(
      [response.status, response.headers.get("x-request-id"), typeof data.key.id],
      [200, "mine", "string"],
    );
  },

  async "gets the first answer again for the same idempotency key"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const options = { idempotencyKey: crypto.randomUUID() };
    const first = await client.emails.send(item(scene), options);
    const again = await client.emails.send(item(scene), options).withResponse();
    equal([again.data.id, again.response.headers.get("idempotent-replayed")], [first.id, "true"]);
    const other = await failure(client.emails.send(item(scene, { subject: "Other" }), options));
    equal(other.code, "idempotency_mismatch");
  },

  async "takes ids as they are, and no path in them"(sdk, scene) {
    const client = clientOf(sdk, scene);
    for (const id of ["a/b", "a?b", "../emails", "ü"])
      equal((await failure(client.emails.get(id))).status, 404);
    for (const id of ["", ".", ".."]) {
      let thrown = null;
      try {
        client.emails.get(id);
      } catch (error) {
        thrown = error;
      }
      equal(thrown instanceof TypeError, true);
    }
  },

  async "needs an API key"({ Postrider }) {
    let thrown = null;
    try {
      new Postrider({ apiKey: "" });
    } catch (error) {
      thrown = error;
    }
    equal(thrown instanceof TypeError, true);
  },

  async "repeats a request after 429, after 503 and after a broken connection, with the same idempotency key"(
    sdk,
    scene,
  ) {
    for (const scenario of ["busy", "down", "cut", "half"]) {
      const { tries, keys } = await failing(sdk, scene, scenario).emails.send(item(scene));
      equal([scenario, tries, new Set(keys).size], [scenario, 2, 1]);
    }
    // A read has no key.
    equal((await failing(sdk, scene, "busy").account.me()).keys, [null, null]);
  },

  async "gives up after the allowed retries"(sdk, scene) {
    const error = await failure(failing(sdk, scene, "broken", { maxRetries: 1 }).account.me());
    equal([error.status, error.type, error.message], [500, "internal_error", "try 2"]);
    equal((await failure(failing(sdk, scene, "broken").account.me({ maxRetries: 0 }))).message, "try 1");
    const unreachable = new sdk.Postrider({ apiKey: "k", baseUrl: "http://127.0.0.1:1", maxRetries: 0 });
    const lost = await failure(unreachable.account.me());
    equal([lost.type, lost.status, lost.cause === undefined], ["connection_error", 0, false]);
  },

  async "does not repeat what cannot succeed, nor wait for an hour"(sdk, scene) {
    equal((await failure(failing(sdk, scene, "refused").account.me())).message, "try 1");
    const busy = await failure(failing(sdk, scene, "hour").account.me());
    equal([busy.type, busy.retryAfter, busy.message], ["rate_limited", 3600, "try 1"]);
  },

  async "understands a proxy that answers without the envelope"(sdk, scene) {
    const { status, type, message } = await failure(
      failing(sdk, scene, "proxy").account.me({ maxRetries: 0 }),
    );
    equal([status, type, message], [502, "service_unavailable", "502 <h1>Bad gateway</h1>"]);
  },

  async "ends a try that takes too long"(sdk, scene) {
    const client = failing(sdk, scene, "silent", { timeoutMs: 50, maxRetries: 0 });
    equal((await failure(client.account.me())).type, "timeout");
    equal((await failure(client.emails.send(item(scene), { timeoutMs: 20 }))).type, "timeout");
  },

  async "ends with the reason of its signal, while it sends and while it waits"(sdk, scene) {
    const reason = new Error("enough");
    for (const scenario of ["silent", "wait"]) {
      const controller = new AbortController();
      const promise = failure(failing(sdk, scene, scenario).account.me({ signal: controller.signal }));
      setTimeout(() => controller.abort(reason), 20);
      equal((await promise) === reason, true);
    }
    const ended = AbortSignal.abort(reason);
    equal((await failure(failing(sdk, scene, "busy").account.me({ signal: ended }))) === reason, true);
  },

  async "follows events live, after a lost connection too"(sdk, scene) {
    const client = clientOf(sdk, scene);
    const stream = client.events.stream({ types: ["queued", "delivery"] });
    const first = stream.next();
    // The stream has only what happens after it is open, so messages are sent until it is.
    let isOpen = false;
    first.then(() => (isOpen = true));
    while (!isOpen) await client.emails.send(item(scene));
    const { value } = await first;
    equal([typeof value.id, ["queued", "delivery"].includes(value.type)], ["string", true]);
    await stream.return();
    const { id: messageId } = await client.emails.send(item(scene));
    const types = [];
    for await (const event of client.events.stream({ messageId, lastEventId: value.id })) {
      types.push(event.type);
      if (event.type === "delivery") break;
    }
    equal([types[0], types.at(-1)], ["accepted", "delivery"]);
  },

  async "ends a stream with its signal"(sdk, scene) {
    const reason = new Error("enough");
    const controller = new AbortController();
    const stream = clientOf(sdk, scene).events.stream({}, { signal: controller.signal });
    const next = failure(stream.next());
    setTimeout(() => controller.abort(reason), 50);
    equal((await next) === reason, true);
  },

  async "verifies a webhook request, and refuses old, altered and unsigned ones"({ verifyWebhook }, scene) {
    const { body, header, secret } = scene.push;
    const now = Number(/t=(\d+)/.exec(header)[1]) * 1000;
    const event = await verifyWebhook(body, header, secret, { now });
    equal([event.type, event.data.bounce.type], ["bounce", "hard"]);
    equal(
      (await verifyWebhook(new TextEncoder().encode(body), header, ["whsec_other", secret], { now })).id,
      event.id,
    );
    equal((await verifyWebhook(body, `${header},v1=${"0".repeat(64)}`, secret, { now })).id, event.id);
    const code = async (...args) => (await failure(verifyWebhook(...args))).code;
    equal(await code(body, header, secret, { now: now + 301_000 }), "too_old");
    equal(await code(body, header, secret, { now: now - 301_000 }), "too_old");
    equal(await code(body, header, secret, { now: now + 301_000, toleranceSeconds: 10 }), "too_old");
    equal(
      (await verifyWebhook(body, header, secret, { now: now + 301_000, toleranceSeconds: 600 })).id,
      event.id,
    );
    equal(await code(body.replace("hard", "soft"), header, secret, { now }), "wrong_signature");
    equal(await code(body, header, "whsec_other", { now }), "wrong_signature");
    equal(
      await code(body, header.replace(/t=\d+/, `t=${now / 1000 + 1}`), secret, { now }),
      "wrong_signature",
    );
    for (const none of [null, undefined, "", "t=1", "v1=00", `t=x,v1=${"0".repeat(64)}`])
      equal(await code(body, none, secret, { now }), "no_signature");
  },
};
