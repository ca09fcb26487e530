import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Code } from "../controls/copy.tsx";
import { Form, TextField } from "../controls/form.tsx";
import { useTask } from "../controls/task.ts";
import { Problem } from "../controls/problem.tsx";
import { mailLink, mailsLinks, program, provider, sessionError, signIn } from "../state/session.ts";

/** Asks for a person's address or leads to the provider, and then asks for an API key. Without people, asks for the key alone. */
export function SignInPage() {
  useEffect(() => {
    document.title = "Sign in · Postrider";
  }, []);
  const forPeople = mailsLinks.value || provider.value !== null;
  return (
    <main class="alone" id="main">
      <p class="brand">
        <span class="brand-mark" aria-hidden="true" />
        <span class="brand-name">Postrider</span>
      </p>
      <h1>Sign in</h1>
      <Problem error={sessionError.value} />
      {mailsLinks.value ? <LinkByMail /> : null}
      {provider.value === null ? null : (
        <p>
          <a class={mailsLinks.value ? "button" : "button primary"} href="/ui/provider">
            Sign in with {provider.value}
          </a>
        </p>
      )}
      {forPeople ? <h2>With an API key</h2> : null}
      <KeyForm isFirst={!forPeople} />
      <p class="quiet">Or make a link that signs you in, on the machine that runs the service:</p>
      <Code text={`${program.value} open`} what="command" />
    </main>
  );
}

function KeyForm({ isFirst }: { isFirst: boolean }) {
  const key = useSignal("");
  const task = useTask();
  const submit = () => {
    sessionError.value = null;
    return signIn(key.value.trim());
  };
  return (
    <Form task={task} onSubmit={submit}>
      <TextField
        label="API key"
        name="key"
        value={key}
        type="password"
        autoComplete="current-password"
        code
        autoFocus={isFirst}
        hint="Its scopes decide what you can see and do here."
      />
      <button
        type="submit"
        class={isFirst ? "button primary" : "button"}
        disabled={task.busy.value || key.value.trim() === ""}
      >
        Sign in
      </button>
    </Form>
  );
}

/** Asks for the address of a member. The answer is the same for every address, so the page cannot tell more. */
function LinkByMail() {
  const email = useSignal("");
  const sent = useSignal(false);
  const task = useTask();
  const ask = async () => {
    await mailLink(email.value.trim());
    sent.value = true;
  };
  if (sent.value)
    return (
      <p role="status">
        If {email.value.trim()} belongs to a member, a link is on its way. It works once, within 15 minutes.
      </p>
    );
  return (
    <Form task={task} onSubmit={ask}>
      <TextField
        label="Email address"
        name="email"
        value={email}
        type="email"
        autoComplete="email"
        autoFocus
        hint="You get a link that signs you in."
      />
      <button type="submit" class="button primary" disabled={task.busy.value || !email.value.includes("@")}>
        Mail me a link
      </button>
    </Form>
  );
}
