import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Code } from "../controls/copy.tsx";
import { Form, TextField } from "../controls/form.tsx";
import { useTask } from "../controls/task.ts";
import { Problem } from "../controls/problem.tsx";
import { mailLink, program, provider, sessionError, signIn } from "../state/session.ts";

/** Asks for an API key, or for an address that a link is mailed to. */
export function SignInPage() {
  const key = useSignal("");
  const task = useTask();
  useEffect(() => {
    document.title = "Sign in · Postrider";
  }, []);
  return (
    <main class="alone" id="main">
      <p class="brand">
        <span class="brand-mark" aria-hidden="true" />
        <span class="brand-name">Postrider</span>
      </p>
      <h1>Sign in</h1>
      {task.error.value === null ? <Problem error={sessionError.value} /> : null}
      <Form task={task} onSubmit={() => signIn(key.value.trim())}>
        <TextField
          label="API key"
          name="key"
          value={key}
          type="password"
          autoComplete="current-password"
          code
          autoFocus
          hint="Its scopes decide what you can see and do here."
        />
        <button type="submit" class="button primary" disabled={task.busy.value || key.value.trim() === ""}>
          Sign in
        </button>
      </Form>
      {provider.value === null ? null : (
        <p>
          <a class="button" href="/ui/provider">
            Sign in with {provider.value}
          </a>
        </p>
      )}
      <LinkByMail />
      <p class="quiet">Or make a link that signs you in, on the machine that runs the service:</p>
      <Code text={`${program.value} open`} what="command" />
    </main>
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
        hint="Members get a link by mail."
      />
      <button type="submit" class="button" disabled={task.busy.value || !email.value.includes("@")}>
        Mail me a link
      </button>
    </Form>
  );
}
