import { renderTemplate, templateVariables } from "../../src/core/templates/render.ts";
import type { Renderer } from "../../src/flows/mime/rendering-tasks.ts";
import { type MailLinks, makeMail } from "../../src/flows/mime/make-mail.ts";

/** Links of a made-up installation. */
export const TEST_LINKS: MailLinks = {
  serviceDomain: "mail.test",
  publicUrl: "https://api.mail.test",
  hostsDomains: false,
  serviceSignature: false,
  verpKey: new Uint8Array(32).fill(3),
  unsubscribeKey: new Uint8Array(32).fill(1),
  trackingKey: new Uint8Array(32).fill(2),
};

/** Renders in the calling thread. */
export function rendererHere(links: MailLinks): Renderer {
  return {
    variables: async (_, source) => templateVariables(source),
    template: async (_, source, data) => renderTemplate(source, data),
    mail: (_, mail) => makeMail(links, mail),
  };
}
