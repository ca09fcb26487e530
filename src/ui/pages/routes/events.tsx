import { useSignal } from "@preact/signals";
import { patch } from "../../api/client.ts";
import type { OutRoute } from "../../api/types.ts";
import { Code } from "../../controls/copy.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { SelectField, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { can } from "../../state/session.ts";

type ProviderName = NonNullable<OutRoute["events"]>["provider"];

interface ProviderWords {
  title: string;
  /** The field that proves its events, and where the provider shows it. Null: a secret is made. */
  proof: { field: string; label: string; placeholder: string; hint: string } | null;
  /** What to enter at the provider, in order. */
  steps: readonly string[];
}

const PROVIDERS: Readonly<Record<ProviderName, ProviderWords>> = {
  ses: {
    title: "Amazon SES",
    proof: {
      field: "topicArn",
      label: "ARN of the SNS topic",
      placeholder: "arn:aws:sns:eu-west-1:123456789012:mail",
      hint: "Create a topic of type Standard in the region of SES.",
    },
    steps: [
      "In SNS, subscribe this URL to the topic with protocol HTTPS, and leave raw message delivery off. Postrider confirms the subscription.",
      "In SES, add the topic to the configuration set, or to the identity under Notifications. Choose Bounce, Complaint, Delivery and Delivery delay.",
    ],
  },
  postmark: {
    title: "Postmark",
    proof: null,
    steps: [
      "In Postmark, open the message stream, then Webhooks, and enter the URL with its secret.",
      "Choose Delivery, Bounce and Spam complaint.",
    ],
  },
  mailgun: {
    title: "Mailgun",
    proof: {
      field: "signingKey",
      label: "HTTP webhook signing key",
      placeholder: "3a1f0c9b7d5e4f2a8c6b1d0e9f7a5c3b",
      hint: "Mailgun shows it under API security.",
    },
    steps: [
      "In Mailgun, open Webhooks, and enter this URL for Delivered Messages, Permanent Failure, Temporary Failure and Spam Complaints.",
    ],
  },
  sendgrid: {
    title: "SendGrid",
    proof: {
      field: "publicKey",
      label: "Verification key",
      placeholder: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…",
      hint: "In SendGrid, open Settings, Mail Settings, Event Webhooks, and create one with signature verification.",
    },
    steps: [
      "Enter this URL there as the Post URL. Choose Delivered, Deferred, Bounced, Dropped and Spam Reports.",
    ],
  },
};

interface EventsProps {
  route: OutRoute;
  path: string;
  onChanged: (route: OutRoute) => void;
  /** Shows a URL with a secret, which the API shows only once. */
  onSecretUrl: (url: string) => void;
}

/** The events of a route's relay: the URL, and what to enter at the provider. */
export function EventsPart({ route, path, onChanged, onSecretUrl }: EventsProps) {
  const open = useSignal<"set" | "stop" | null>(null);
  const { events } = route;
  const close = () => {
    open.value = null;
  };
  const change = async (given: Record<string, string> | null) => {
    const changed = await patch<OutRoute>(path, { events: given }, { account: true });
    close();
    // The answer that sets a secret is the only one that shows it.
    const url = changed.events?.url;
    const plain = url?.replace(/\?secret=.*$/, "");
    const shown = changed.events === null ? null : { ...changed.events, url: plain ?? "" };
    onChanged({ ...changed, events: shown });
    if (url !== undefined && url !== plain) onSecretUrl(url);
  };
  return (
    <section class="detail-part" aria-label="Events">
      <div class="part-head">
        <h3>Events</h3>
        {can("senders:write") ? (
          <span class="part-actions">
            {events === null ? null : (
              <button type="button" class="button small" onClick={() => (open.value = "stop")}>
                Stop taking events
              </button>
            )}
            <button type="button" class="button small" onClick={() => (open.value = "set")}>
              {events === null ? "Take events" : "Change"}
            </button>
          </span>
        ) : null}
      </div>
      {events === null ? (
        <p class="quiet">
          A relay only accepts mail. If its provider reports what became of it, those reports become events of
          the messages, suppressions and webhooks.
        </p>
      ) : (
        <Steps {...events} />
      )}
      {open.value === "set" ? (
        <SetEvents provider={events?.provider ?? "ses"} onSave={change} onClose={close} />
      ) : null}
      {open.value === "stop" ? (
        <Confirm
          title="Stop taking events?"
          verb="Stop taking events"
          onConfirm={() => change(null)}
          onClose={close}
        >
          <p>The requests of the provider are refused. Mail through this route stays at sent.</p>
        </Confirm>
      ) : null}
    </section>
  );
}

function Steps({ provider, url }: NonNullable<OutRoute["events"]>) {
  const { title, proof, steps } = PROVIDERS[provider];
  return (
    <>
      <p>Reports of {title} are taken at this URL:</p>
      <Code text={url} what="URL for events" />
      {proof === null ? (
        <p class="quiet">Its secret was shown once. Change makes another URL with another secret.</p>
      ) : null}
      <ol class="numbered">
        {steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
    </>
  );
}

interface SetProps {
  provider: ProviderName;
  onSave: (given: Record<string, string>) => Promise<void>;
  onClose: () => void;
}

function SetEvents({ provider: before, onSave, onClose }: SetProps) {
  const provider = useSignal<string>(before);
  const value = useSignal("");
  const { proof } = PROVIDERS[provider.value as ProviderName];
  const save = () =>
    onSave({
      provider: provider.value,
      ...(proof === null ? {} : { [proof.field]: value.value.trim() }),
    });
  return (
    <FormDialog title="Take events of the relay" verb="Take events" onSubmit={save} onClose={onClose}>
      <SelectField
        label="Provider"
        name="events.provider"
        value={provider}
        options={Object.entries(PROVIDERS).map(([name, { title }]) => ({ value: name, text: title }))}
      />
      {proof === null ? (
        <p class="hint">Postmark signs nothing, so the URL gets a secret. It is shown once.</p>
      ) : (
        <TextField
          key={proof.field}
          label={proof.label}
          name={`events.${proof.field}`}
          value={value}
          code
          placeholder={proof.placeholder}
          hint={proof.hint}
        />
      )}
    </FormDialog>
  );
}
