import { adviceParts } from "../words/operations.ts";
import { HelpText } from "./help-text.tsx";

/** Advice of the API. An operation in it is a link to the page that does the same. */
export function Advice({ text }: { text: string }) {
  return (
    <>
      {adviceParts(text).map(({ text: words, href, at }) =>
        href === null ? (
          <HelpText key={at} text={words} />
        ) : (
          <a key={at} href={href}>
            {words}
          </a>
        ),
      )}
    </>
  );
}
