import { RenderingFailure } from "../../core/templates/render.ts";
import type { Making } from "../mime/making.ts";

/**
 * Returns the subject of one message, which is stored with it, because lists and searches show it. Null if the values of the contact
 * do not fit: one contact must not stop the others.
 */
export async function renderedSubject(
  { renderer }: Pick<Making, "renderer">,
  senderId: string,
  subject: string,
  data: Record<string, unknown>,
): Promise<string | null> {
  if (!/\{[{%]/.test(subject)) return subject;
  try {
    return (await renderer.template(senderId, { subject, html: null, text: null }, data)).subject;
  } catch (error) {
    if (!(error instanceof RenderingFailure)) throw error;
    return null;
  }
}
