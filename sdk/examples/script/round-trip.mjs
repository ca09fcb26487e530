// Sends a message, receives its webhook and an answer: on Node.js, Bun and Deno, without a test runner.
import { createServer } from "node:http";
import { Postrider, verifyWebhook } from "postrider";
import { startPostrider } from "postrider/testing";

const mail = await startPostrider();
const client = new Postrider({ apiKey: mail.apiKey, baseUrl: mail.url });

let took;
const request = new Promise((resolve) => {
  took = resolve;
});
const endpoint = createServer(async (incoming, response) => {
  let body = "";
  for await (const chunk of incoming) body += chunk;
  response.end();
  took({ body, signature: incoming.headers["service-signature"] });
});
await new Promise((resolve) => endpoint.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${endpoint.address().port}/webhooks`;
const { signingSecret } = await client.webhooks.create({ url, eventTypes: ["delivery"] });

const text = "Your code is 493817.";
const { id } = await client.emails.send({
  from: "hello@acme.example",
  to: "ana@example.com",
  subject: "Hi",
  text,
});
const message = await mail.waitFor({ to: "ana@example.com" });
const { body, signature } = await request;
const event = await verifyWebhook(body, signature, signingSecret);
const answer = {
  from: "ana@example.com",
  to: "support@acme.example",
  subject: "Re: Hi",
  text: "Where is it?",
};
const { threadId } = await mail.receive(answer);
const thread = await client.threads.get(threadId);

endpoint.close();
endpoint.closeAllConnections();
await mail.stop();
console.log(
  JSON.stringify({
    codes: message.codes,
    isSame: event.data.messageId === id,
    event: event.type,
    subject: thread.subject,
  }),
);
