import { startPostrider } from "postrider/testing";
import { expect, test as base, vi } from "vitest";
import { startApp } from "../app/app.cjs";

// A wait ends after 10 s with an error that lists what came. A runner that ends the test before hides it.
vi.setConfig({ testTimeout: 30_000 });

// One service for the file, and a project with its own application for each test, so that they may run at the same time.
const test = base
  .extend("mail", { scope: "file" }, async ({}, { onCleanup }) => {
    const mail = await startPostrider();
    onCleanup(() => mail.stop());
    return mail;
  })
  .extend("project", ({ mail, task }) => mail.project(task.name))
  .extend("app", async ({ project }, { onCleanup }) => {
    const app = await startApp({ apiKey: project.apiKey, baseUrl: project.url });
    onCleanup(() => app.stop());
    return app;
  });

test.concurrent("a new user gets a code", async ({ app, project }) => {
  await app.signUp("ana@example.com");
  const message = await project.waitFor({ to: "ana@example.com", subject: /confirm/i });
  expect(message.codes).toEqual(["493817"]);
});

test.concurrent("a new user gets a link", async ({ app, project }) => {
  await app.signUp("ana@example.com");
  const message = await project.waitFor({ to: "ana@example.com" });
  expect(message.links[0]?.url).toContain(`${app.url}/confirm`);
});
