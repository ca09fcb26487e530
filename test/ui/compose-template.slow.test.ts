import { expect } from "bun:test";
import { startService } from "../support/service.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const ui = dashboard({
  start: () => startService({ DELIVERY: "capture" }),
  prepare: () => ui.service.call("POST", "/v1/inboxes", { address: "help@inbox.mail.test" }),
  path: "/livez",
  as: "projectKey",
});

const { see, press, fill } = ui;

browserTest("a template is filled in by fields, tried by a test to oneself, and sent", async () => {
  const { body: template } = await ui.service.call("POST", "/v1/templates", {
    name: "Order",
    subject: "Order {{ order.number }}",
    text: "Hello {{ name }}, {% for item in items %}{{ item }};{% endfor %}",
  });
  await ui.go(`/templates/${template.id}`);
  await press("Send");
  await fill("From", "help@inbox.mail.test");
  await fill("To", "ana@one.test");
  await fill("order.number", "42");
  await fill("name", "Ana");
  await fill("items", '["tea","cups"]');
  await press("Send me a test");
  const own = (await ui.service.call("GET", "/v1/me")).body.account.ownerEmail;
  const link = ui.page.getByRole("link", { name: `Open the test to ${own}` });
  await link.waitFor();
  const tried = await ui.service.message(
    ((await link.getAttribute("href")) ?? "").slice("/messages/".length),
    "delivered",
  );
  expect(tried).toMatchObject({ to: [own], cc: [], subject: "Order 42", text: "Hello Ana, tea;cups;" });
  await press("Send message");
  await see("ana@one.test");
  const [sent] = (await ui.service.call("GET", "/v1/emails?to=ana@one.test")).body.data;
  // The template gives the subject when the message is sent.
  expect(await ui.service.message(sent.id, "delivered")).toMatchObject({
    subject: "Order 42",
    to: ["ana@one.test"],
  });
});

browserTest("data that is no JSON object cannot be sent", async () => {
  await ui.go("/messages?compose=1");
  await ui.page.getByLabel("Template").selectOption({ label: "Order" });
  await press("JSON");
  await fill("Data as JSON", "[1]");
  await see("The data is no JSON object.");
  expect(await ui.page.getByRole("button", { name: "Send message" }).isDisabled()).toBe(true);
});
