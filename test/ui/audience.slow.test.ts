import { describe, expect } from "bun:test";
import { brokenPages } from "../support/axe.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";
import { startService } from "../support/service.ts";

const ui = dashboard({
  start: () => startService({ DELIVERY: "capture" }),
  path: "/contacts",
  as: "projectKey",
  viewport: WIDE,
});
const { go, see, press, follow, fill, inDialog } = ui;
const call = async (method: string, path: string, body?: unknown) =>
  (await ui.service.call(method, path, body)).body;

describe("the audience pages", () => {
  browserTest("define a property, and a contact gets a value of its type", async () => {
    await go("/contacts");
    await follow("Properties");
    await follow("Create a property");
    await fill("Name", "seats");
    await ui.page.getByLabel("Type").selectOption({ label: "Number" });
    await fill("If a contact has none", "1");
    await press("Create property");
    await ui.page.getByRole("heading", { name: "seats" }).waitFor();
    await call("POST", "/v1/topics", { name: "News" });
    const { id } = await call("POST", "/v1/contacts", {
      email: "ana@one.test",
      consent: { how: "sign-up form", ip: "203.0.113.7" },
    });
    await go(`/contacts/${id}`);
    await see("no value");
    await see("sign-up form, from 203.0.113.7");
    await press("Edit");
    await fill("seats", "12");
    await ui.page.getByLabel("Topic News").selectOption({ label: "Unsubscribed" });
    await press("Save contact");
    await see("News, by the API");
    const contact = await call("GET", `/v1/contacts/${id}`);
    expect(contact.properties).toEqual({ seats: 12 });
    expect(Object.values(contact.topics)).toEqual(["unsubscribed"]);
  });

  browserTest("count a filter while it is written, list its contacts, and save it as a segment", async () => {
    for (const seats of [2, 20, 30])
      await call("POST", "/v1/contacts", { email: `s${seats}@two.test`, properties: { seats } });
    await go("/contacts");
    await follow("Filter");
    await fill("Value of condition 1", "two.test");
    await see("3 contacts");
    await press("Add condition");
    await ui.page.getByLabel("Condition 2", { exact: true }).selectOption({ label: "seats" });
    await see("A condition has no value yet.");
    await ui.page.getByLabel("Comparison of condition 2").selectOption({ label: "is more than" });
    await fill("Value of condition 2", "10");
    await see("2 contacts: s30@two.test, s20@two.test");
    await press("Show contacts");
    await ui.page.getByText("s2@two.test").waitFor({ state: "detached" });
    await follow("Save as segment");
    await fill("Name", "Large teams");
    await press("Create segment");
    await ui.page.getByRole("heading", { name: "Large teams" }).waitFor();
    await see("Address contains “two.test” and seats is more than 10");
    const [{ filter }] = (await call("GET", "/v1/segments")).data;
    expect(filter).toEqual({
      all: [
        { field: "email", op: "contains", value: "two.test" },
        { property: "seats", op: "gt", value: 10 },
      ],
    });
  });

  browserTest("show why a condition is refused next to it", async () => {
    await go(
      `/contacts?edit=filter&filter=${encodeURIComponent('{"property":"seats","op":"eq","value":1}')}`,
    );
    await ui.page.getByLabel("Comparison of condition 1").selectOption({ label: "is" });
    await ui.page.getByLabel("Condition 1", { exact: true }).selectOption({ label: "Created" });
    await fill("Value of condition 1", "99999");
    await ui.page.locator(".field.invalid", { hasText: "must be a number of days" }).waitFor();
    await fill("Value of condition 1", "7");
    await see("4 contacts");
  });

  browserTest("keep the part of a segment's filter that the form cannot show", async () => {
    const inner = {
      any: [
        { property: "seats", op: "eq", value: 2 },
        { property: "seats", op: "eq", value: 20 },
      ],
    };
    const all = [inner, { field: "subscribed", op: "eq", value: true }];
    const { id } = await call("POST", "/v1/segments", { name: "Kept", filter: { all } });
    await go("/segments");
    await ui.page.locator(".row", { hasText: "Kept" }).getByText("2 contacts").waitFor();
    await follow(/Kept/);
    await press("Edit");
    await see("seats is 2 or seats is 20");
    await press("Remove condition 2");
    await press("Save segment");
    await ui.page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await call("GET", `/v1/segments/${id}`)).filter).toEqual({ all: [inner] });
    await press("Delete");
    await inDialog("Delete segment");
    await ui.page.getByText("Kept").first().waitFor({ state: "detached" });
    expect((await call("GET", "/v1/segments")).data).toHaveLength(1);
  });

  browserTest("unsubscribe and delete selected contacts", async () => {
    await go("/contacts?q=two.test");
    for (const name of ["s20", "s30"])
      await ui.page.getByRole("checkbox", { name: `Select ${name}@two.test` }).click();
    await press("Unsubscribe");
    await see("2 unsubscribed.");
    expect((await call("GET", "/v1/contacts?subscribed=false")).data).toHaveLength(2);
    await ui.page.getByRole("checkbox", { name: "Select s2@two.test" }).click();
    await press("Delete");
    await inDialog("Delete");
    await see("1 deleted.");
    expect((await call("GET", "/v1/contacts?q=s2@two.test")).data).toEqual([]);
  });

  browserTest("create a topic, show what readers see of it, and delete it", async () => {
    await go("/topics?create=1");
    await fill("Name", "Tips");
    await fill("Description", "Twice a month");
    await ui.page.getByLabel("Contacts who have not chosen get it").uncheck();
    await press("Create topic");
    await see("Contacts get it only after they have joined it.");
    const shown = ui.page.frameLocator("iframe");
    await shown.getByText("Twice a month").waitFor();
    await ui.page.getByLabel("Language").selectOption({ label: "Deutsch" });
    await shown.getByRole("button", { name: "Abonnieren: Tips" }).waitFor();
    await press("Edit");
    await ui.page.getByLabel("The page of unsubscribe links shows it").uncheck();
    await ui.page.getByLabel("People join only by a mailed link (double opt-in)").check();
    await press("Save topic");
    await see("Contacts get it once they have used the link that is mailed to them.");
    await see("That of other messages leaves the topic out.");
    await press("Delete");
    await inDialog("Delete topic");
    await ui.page.waitForURL(/\/topics$/);
    expect((await call("GET", "/v1/topics")).data).toHaveLength(1);
  });

  browserTest("write a broadcast, show it as a contact gets it, send it, and show its results", async () => {
    await call("POST", "/v1/domains", { domain: "acme.test" });
    await call("POST", "/v1/contacts", { email: "rita@three.test", firstName: "Rita" });
    await go("/broadcasts");
    await follow("Create a broadcast");
    await fill("Name", "May letter");
    await fill("From", "Acme <news@acme.test>");
    await press("Create broadcast");
    await fill("Subject", "Hello {{ contact.firstName }}");
    const text = ui.page.getByRole("textbox", { name: "Text" });
    await text.fill("It is May.");
    await ui.page.getByRole("heading", { name: "Hello Rita" }).waitFor();
    await fill("Second subject", "May for {{ contact.firstName }}");
    await see(/^10 % of the contacts get each subject\. 4 h later, the others/);
    await ui.page.getByLabel("Test with").selectOption({ label: "All contacts" });
    await see("Half of the contacts get each subject.");
    await ui.page.getByLabel("With the subject").selectOption("b");
    await ui.page.getByRole("heading", { name: "May for Rita" }).waitFor();
    await press("Save draft");
    await ui.page.getByRole("tab", { name: "Check" }).click();
    await see("must show the link to unsubscribe");
    await text.fill("It is May. Unsubscribe: {{ unsubscribeUrl }}");
    await press("Send me a test");
    await see("Open the test to");
    await see("3 contacts have no contact.firstName.");
    await press("Send…");
    await see("1 contact");
    await ui.page.getByLabel("Send it to them too").check();
    await inDialog("Send broadcast");
    await see(/1 message in/);
    await see("100 %");
    await see("No clear difference so far");
    const [{ counts }] = (await call("GET", "/v1/broadcasts")).data;
    expect(counts).toMatchObject({ recipients: 1, delivered: 1 });
    await ui.page.getByRole("tab", { name: "Recipients" }).click();
    await see("rita@three.test");
    await ui.page.getByRole("tab", { name: "Content" }).click();
    await ui.page.getByRole("heading", { name: "Hello Rita" }).waitFor();
    const [message] = (await call("GET", "/v1/emails?to=rita@three.test")).data;
    expect(["Hello Rita", "May for Rita"]).toContain(message.subject);
  });

  browserTest("keep the list when a broadcast opens, and read its results and recipients once", async () => {
    await go("/broadcasts");
    const list = await ui.page.locator(".list-scroll").elementHandle();
    const reads: string[] = [];
    ui.page.on("request", (request) => {
      const [, part] = /^\/v1\/broadcasts\/[^/]+\/(\w+)$/.exec(new URL(request.url()).pathname) ?? [];
      if (part !== undefined) reads.push(part);
    });
    await follow(/May letter/);
    await see("100 %");
    await ui.page.getByRole("tab", { name: "Recipients" }).click();
    await see("rita@three.test");
    await ui.page.getByRole("tab", { name: "Content" }).click();
    await ui.page.getByRole("heading", { name: "Hello Rita" }).waitFor();
    expect(await list?.evaluate((node) => node.isConnected)).toBe(true);
    expect(reads).toEqual(["results", "recipients"]);
  });

  browserTest("watch a broadcast that is being sent, pause it, go on and cancel it", async () => {
    await call("POST", "/v1/contacts", { email: "sven@three.test" });
    const [{ id: topicId }] = (await call("GET", "/v1/topics")).data;
    const slow = { name: "Slow letter", topicId, from: "news@acme.test", subject: "Hi", ratePerHour: 1 };
    const { id } = await call("POST", "/v1/broadcasts", { ...slow, text: "Hi. {{ unsubscribeUrl }}" });
    await go("/broadcasts");
    await call("POST", `/v1/broadcasts/${id}/send`);
    await go(`/broadcasts/${id}`);
    await see(/^[1-9]\d* of \d+ contacts so far\.$/);
    await press("Pause");
    await see(/It waits after/);
    await press("Resume");
    await see(/so far/);
    await press("Cancel broadcast");
    await inDialog("Cancel broadcast");
    await see(/It ended after/);
    expect((await call("GET", `/v1/broadcasts/${id}`)).status).toBe("canceled");
  });

  browserTest("break no rule of WCAG AA", async () => {
    const [segment] = (await call("GET", "/v1/segments")).data;
    const [topic] = (await call("GET", "/v1/topics")).data;
    const sent = (await call("GET", "/v1/broadcasts")).data.find(
      ({ status }: { status: string }) => status === "sent",
    );
    const letter = {
      name: "Draft",
      topicId: topic.id,
      from: "news@acme.test",
      subject: "Hello Sven",
      abTest: { subject: "May" },
      text: "Hi",
    };
    const draft = await call("POST", "/v1/broadcasts", letter);
    const filter = encodeURIComponent(JSON.stringify(segment.filter));
    const broken = await brokenPages(ui.page, ui.service.url, [
      [`/contacts?edit=filter&filter=${filter}`, "2 contacts"],
      [`/broadcasts/${sent.id}`, "100 %"],
      [`/broadcasts/${draft.id}`, "Hello Sven"],
    ]);
    expect(broken).toEqual([]);
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});
