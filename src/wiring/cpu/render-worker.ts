// Entry of the worker threads that render templates and compose messages.
import {
  type AnyAsked,
  octetsOf,
  type OpenedKeys,
  type Rendered,
  type RenderingKind,
  runRendering,
} from "../../flows/mime/rendering-tasks.ts";
import { serveCpu, type Work } from "./serve.ts";

serveCpu(rendering);

function rendering(): Work<AnyAsked, Rendered<RenderingKind>> {
  const keys: OpenedKeys = new Map();
  return {
    run(asked, turnTo) {
      turnTo();
      return runRendering(keys, asked);
    },
    octets: octetsOf,
    handedOver,
  };
}

/** Returns the buffer of a message, if it holds nothing else. */
function handedOver({ made }: Rendered<RenderingKind>): ArrayBuffer[] {
  if (made === undefined || !("raw" in made)) return [];
  const { buffer, byteLength } = made.raw;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
