import { renderTemplate, templateVariables } from "../../src/core/templates.ts";
import type { Renderer } from "../../src/flows/renderings.ts";
import { type MailLinks, makeMail } from "../../src/flows/send/make-mail.ts";

/** Links of an installation that is nobody's. */
export const TEST_LINKS: MailLinks = {
  serviceDomain: "mail.test",
  publicUrl: "https://api.mail.test",
  unsubscribeKey: new Uint8Array(32).fill(1),
  trackingKey: new Uint8Array(32).fill(2),
};

/** Renders in the thread that asks. */
export function rendererHere(links: MailLinks): Renderer {
  return {
    variables: async (_, source) => templateVariables(source),
    template: async (_, source, data) => renderTemplate(source, data),
    mail: (_, mail) => makeMail(links, mail),
  };
}
