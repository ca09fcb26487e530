// The application that the examples test: whoever signs up gets a message with a code and a link.
const { createServer } = require("node:http");

/** Starts the application on a free port. It sends by the mail service at `baseUrl`. */
exports.startApp = async ({ apiKey, baseUrl }) => {
  const confirmed = new Set();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, origin());
    const email = url.searchParams.get("email");
    if (url.pathname === "/sign-up") await sendCode(email);
    if (url.pathname === "/confirm") confirmed.add(email);
    response.setHeader("content-type", "text/html");
    response.end(confirmed.has(email) ? `<h1>Welcome, ${email}</h1>` : FORM);
  });
  const origin = () => `http://127.0.0.1:${server.address().port}`;
  const sendCode = async (email) => {
    const link = `${origin()}/confirm?email=${encodeURIComponent(email)}`;
    const html = `<p>Your code is 493817.</p><p><a href="${link}">Confirm</a></p>`;
    const message = { from: "Acme <hello@acme.example>", to: email, subject: "Please confirm", html };
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const answer = await fetch(`${baseUrl}/v1/emails`, {
      method: "POST",
      headers,
      body: JSON.stringify(message),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: origin(),
    signUp: (email) => fetch(`${origin()}/sign-up?email=${encodeURIComponent(email)}`),
    stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
};

const FORM =
  '<form action="/sign-up">Email <input name="email" aria-label="Email"> <button>Sign up</button></form>';
