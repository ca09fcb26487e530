import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { post } from "../../api/client.ts";
import type { SendItem } from "../../api/types.ts";
import { Code } from "../../controls/copy.tsx";
import { Dialog } from "../../controls/dialog.tsx";
import { Files } from "../../controls/files.tsx";
import { Form, TextArea, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { Tabs } from "../../components/tabs.tsx";
import { type ChosenFile, type Draft, draft, EMPTY_DRAFT, itemOf } from "../../state/draft.ts";
import { codeContext, onboardingSender, useDomains } from "../../state/installation.ts";
import { navigate } from "../../state/router.ts";
import { me } from "../../state/session.ts";
import { sendAsCurl, sendAsTypeScript } from "../../words/code.ts";
import { parseData } from "../../words/sample-data.ts";
import { randomText } from "../../words/random.ts";
import { Check } from "./check.tsx";
import { TemplateChoice, TemplateData } from "./template.tsx";
import { TestSend } from "./test-send.tsx";

type TextName =
  | "from"
  | "to"
  | "cc"
  | "bcc"
  | "replyTo"
  | "subject"
  | "text"
  | "html"
  | "scheduledAt"
  | "templateId"
  | "data";
type Values = Record<TextName, Signal<string>> & { files: Signal<readonly ChosenFile[]> };

function useValues(first: Draft): Values {
  return {
    from: useSignal(first.from),
    to: useSignal(first.to),
    cc: useSignal(first.cc),
    bcc: useSignal(first.bcc),
    replyTo: useSignal(first.replyTo),
    subject: useSignal(first.subject),
    text: useSignal(first.text),
    html: useSignal(first.html),
    scheduledAt: useSignal(first.scheduledAt),
    templateId: useSignal(first.templateId),
    data: useSignal(first.data),
    files: useSignal(first.files),
  };
}

/** Returns what the window holds, with the parts of the first draft that it does not show. */
function draftIn(values: Values, first: Draft): Draft {
  const { files, ...texts } = values;
  const typed = Object.fromEntries(Object.entries(texts).map(([name, { value }]) => [name, value]));
  return { ...first, ...(typed as Record<TextName, string>), files: files.value };
}

/** Writes a message, and shows the same send as code. */
export function Compose({ onClose }: { onClose: () => void }) {
  const first = draft.peek();
  const values = useValues(first);
  const more = useSignal([first.cc, first.bcc, first.replyTo, first.scheduledAt].some((text) => text !== ""));
  const view = useSignal("write");
  const task = useTask();
  const key = useSignal(randomText()).value;
  useSuggestions(values);
  const isOver = useRef(false);
  useLayoutEffect(() => {
    // The draft is taken up once. The next one is the message that was neither sent nor discarded.
    draft.value = EMPTY_DRAFT;
    return () => {
      if (!isOver.current) draft.value = draftIn(values, first);
    };
  }, []);
  const item = itemOf(draftIn(values, first));
  const isUnreadable = item.templateId !== undefined && parseData(values.data.value) === null;
  const submit = async () => {
    const { id } = await post<{ id: string }>("/v1/emails", item, {
      idempotencyKey: `ui-${key}-${hash(item)}`,
    });
    isOver.current = true;
    navigate(`/messages/${id}`);
  };
  return (
    <Dialog title={first.again === null ? "Send a message" : "Send again"} size="wide" onClose={onClose}>
      <Form class="dialog-body form compose" task={task} onSubmit={submit}>
        <Tabs
          label="View"
          tabs={[
            { id: "write", label: "Message" },
            { id: "check", label: "Check" },
            { id: "curl", label: "curl" },
            { id: "typescript", label: "TypeScript" },
          ]}
          selected={view.value}
          onSelect={(id) => (view.value = id)}
        >
          {view.value === "write" ? (
            <Editor values={values} more={more} />
          ) : view.value === "check" ? (
            <Check path="/v1/emails/check" body={item} />
          ) : (
            <SameAsCode item={item} language={view.value} />
          )}
        </Tabs>
        <footer class="dialog-foot">
          <button
            type="button"
            class="button"
            onClick={() => {
              isOver.current = true;
              onClose();
            }}
          >
            Discard
          </button>
          <TestSend onTest={(to) => sendTest(item, to)} task={task} disabled={isUnreadable} />
          <button type="submit" class="button primary" disabled={task.busy.value || isUnreadable}>
            {values.scheduledAt.value === "" ? "Send message" : "Schedule message"}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}

/** Sends the message to one address alone, now. Returns its id. */
async function sendTest(item: SendItem, to: string): Promise<string> {
  const { cc: _cc, bcc: _bcc, scheduledAt: _at, ...rest } = item;
  return (await post<{ id: string }>("/v1/emails", { ...rest, to: [{ email: to }] })).id;
}

/** Returns a short text that differs if the item differs, so that a corrected send does not reuse the key of the first. */
function hash(item: SendItem): string {
  let value = 0;
  for (const char of JSON.stringify(item)) value = (Math.imul(value, 31) + char.charCodeAt(0)) | 0;
  return (value >>> 0).toString(36);
}

/** Fills in a sender and a recipient that work without any setup, if there are none yet. */
function useSuggestions({ from, to }: Values): void {
  const domains = useDomains().value.value;
  useEffect(() => {
    if (domains === null) return;
    const verified = domains.find(({ status }) => status === "verified");
    if (from.peek() === "")
      from.value = verified === undefined ? onboardingSender() : `hello@${verified.domain}`;
    // The onboarding domain sends to the owner only.
    if (to.peek() === "" && verified === undefined) to.value = me.peek()?.account.ownerEmail ?? "";
  }, [domains, from, to]);
}

function Editor({ values, more }: { values: Values; more: Signal<boolean> }) {
  return (
    <>
      <TextField label="From" name="from" value={values.from} />
      <TextField
        label="To"
        name="to"
        value={values.to}
        autoFocus
        placeholder="ana@example.com, Ben <ben@example.com>"
      />
      {more.value ? (
        <>
          <TextField label="Cc" name="cc" value={values.cc} />
          <TextField label="Bcc" name="bcc" value={values.bcc} />
          <TextField label="Reply to" name="replyTo" value={values.replyTo} />
          <TextField
            label="Send at"
            name="scheduledAt"
            type="datetime-local"
            value={values.scheduledAt}
            hint="In your own time zone. Empty sends now."
          />
        </>
      ) : (
        <button type="button" class="button bare small" onClick={() => (more.value = true)}>
          Cc, Bcc, Reply to, schedule
        </button>
      )}
      <TemplateChoice templateId={values.templateId} />
      <TextField
        label="Subject"
        name="subject"
        value={values.subject}
        hint={values.templateId.value === "" ? undefined : "Empty: the template's."}
      />
      {values.templateId.value === "" ? (
        <BodyFields values={values} />
      ) : (
        <TemplateData key={values.templateId.value} templateId={values.templateId.value} data={values.data} />
      )}
      <Files files={values.files} limit={me.value?.limits.maxAttachments ?? 0} />
    </>
  );
}

function BodyFields({ values }: { values: Values }) {
  const html = useSignal(values.html.peek() !== "" && values.text.peek() === "");
  return (
    <>
      <fieldset class="segments">
        <legend class="hidden">Body</legend>
        <button type="button" aria-pressed={!html.value} onClick={() => (html.value = false)}>
          Text
        </button>
        <button type="button" aria-pressed={html.value} onClick={() => (html.value = true)}>
          HTML
        </button>
      </fieldset>
      {html.value ? (
        <TextArea labelHidden label="HTML" name="html" value={values.html} rows={10} code />
      ) : (
        <TextArea labelHidden label="Text" name="text" value={values.text} rows={10} />
      )}
    </>
  );
}

function SameAsCode({ item, language }: { item: SendItem; language: string }) {
  const context = codeContext();
  const text = language === "curl" ? sendAsCurl(item, context) : sendAsTypeScript(item, context);
  return <Code text={text} what={language} label={`The same send as ${language}`} />;
}
