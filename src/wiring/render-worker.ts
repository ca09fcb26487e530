// Entry of the threads that render templates and make mails.
import {
  type AnyAsked,
  octetsOf,
  type OpenedKeys,
  type Rendered,
  type RenderingKind,
  render,
} from "../flows/renderings.ts";
import type { MailLinks } from "../flows/send/make-mail.ts";
import { serveThread, type Work } from "./threads/serve.ts";

serveThread(rendering);

function rendering(links: MailLinks): Work<AnyAsked, Rendered<RenderingKind>> {
  const keys: OpenedKeys = new Map();
  return {
    run(asked, turnTo) {
      turnTo();
      return render(links, keys, asked);
    },
    octets: octetsOf,
    handedOver,
  };
}

/** The bytes of a mail, where they have their memory for themselves. */
function handedOver({ made }: Rendered<RenderingKind>): ArrayBuffer[] {
  if (made === undefined || !("raw" in made)) return [];
  const { buffer, byteLength } = made.raw;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
