import { AppError, invalid } from "../../core/errors.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { isBlank } from "../../core/messages/send-rules.ts";
import { RenderingFailure, refusalOf } from "../../core/templates/render.ts";
import type { Db } from "../../store/engine/client.ts";
import { findTemplate } from "../../store/projects/templates.ts";
import { LINK_VARIABLE } from "../mime/unsubscribe.ts";
import type { Renderer } from "../mime/rendering-tasks.ts";

/**
 * Returns a send item with its template rendered as at an attempt; null if it has none. An approver must see what is sent, and a later change
 * of the template must not change it.
 * @throws AppError 422 `rendering_failure` or `template_not_found`
 */
export async function renderedItem(
  { db, renderer }: { db: Db; renderer: Renderer },
  senderId: string,
  item: ReadItem,
): Promise<ReadItem | null> {
  const { templateId, data = {}, unsubscribeLink } = item;
  if (templateId === undefined) return null;
  const template = await findTemplate(db, senderId, templateId);
  if (template === null) throw invalid("templateId", "is gone.", "template_not_found");
  const values = unsubscribeLink === true ? { ...data, unsubscribeUrl: LINK_VARIABLE } : data;
  const rendered = await renderer.template(senderId, template, values).catch((error: unknown) => {
    throw error instanceof RenderingFailure ? refusalOf(error) : error;
  });
  const html = item.html || rendered.html;
  const text = item.text || rendered.text;
  if (isBlank(html) && isBlank(text))
    throw new AppError("validation_error", "The template renders to neither html nor text.", {
      code: "rendering_failure",
      param: "templateId",
    });
  return {
    ...item,
    subject: item.subject || rendered.subject,
    ...(html === null ? {} : { html }),
    ...(text === null ? {} : { text }),
  };
}
