import type { Contact } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { Timeline } from "../../components/timeline.tsx";
import { useAudience } from "../../state/audience.ts";
import { can } from "../../state/session.ts";
import { valueText } from "./values.tsx";

/** The values of a contact's properties. Nothing if the project has no properties. */
export function Properties({ contact: { properties } }: { contact: Contact }) {
  const known = useAudience().value.value?.properties ?? [];
  const names = known.length > 0 ? known.map(({ name }) => name) : Object.keys(properties);
  if (names.length === 0) return null;
  return (
    <section class="detail-part" aria-label="Properties">
      <div class="part-head">
        <h3>Properties</h3>
        {can("audience:write") ? (
          <a class="button small" href="/properties">
            Define properties
          </a>
        ) : null}
      </div>
      <dl class="headers">
        {names.map((name) => {
          const value = properties[name];
          return (
            <div key={name}>
              <dt>{name}</dt>
              <dd dir="auto">
                {value === undefined ? <span class="quiet">no value</span> : valueText(value)}
              </dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}

/** Which topics the contact gets. Nothing if the project has none. */
export function Topics({ contact: { topics: choices, subscribed } }: { contact: Contact }) {
  const topics = useAudience().value.value?.topics ?? [];
  if (topics.length === 0) return null;
  return (
    <section class="detail-part form" aria-label="Topics">
      <h3>Topics</h3>
      {subscribed ? null : <p class="quiet">An unsubscribed contact gets no topic.</p>}
      <ul class="checks">
        {topics.map(({ id, name, defaultSubscribed }) => {
          const choice = choices[id];
          const gets = choice === undefined ? defaultSubscribed : choice === "subscribed";
          const state =
            choice === "pending"
              ? PENDING
              : {
                  tone: gets && subscribed ? ("good" as const) : ("quiet" as const),
                  word: gets ? "Gets it" : "Not",
                };
          return (
            <li key={id}>
              <Dot {...state} />
              <span>
                <a href={`/topics/${id}`} dir="auto">
                  {name}
                </a>
                {choice === undefined ? <span class="quiet"> has not chosen</span> : null}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const PENDING = {
  tone: "late",
  word: "Asked",
  title: "The person has not used the mailed link, and gets nothing.",
} as const;

const HOW: Readonly<Record<string, string>> = {
  api: "by the API",
  page: "on the page of an unsubscribe link",
  one_click: "by the unsubscribe button of a mail program",
  double_opt_in: "by the mailed link",
  mail: "by mail to the address of List-Unsubscribe",
};

/** How the person joined and left, with the proof of each step. */
export function Consent({ contact: { consent } }: { contact: Contact }) {
  const topics = useAudience().value.value?.topics ?? [];
  if (consent.length === 0) return null;
  return (
    <section class="detail-part form" aria-label="Consent">
      <h3>Consent</h3>
      <Timeline
        label="Consent"
        moments={consent.map(({ at, subscribed, how, ip, topicId }, index) => {
          const about =
            topicId === undefined ? null : (topics.find(({ id }) => id === topicId)?.name ?? topicId);
          return {
            key: `${index}`,
            at,
            tone: subscribed ? "good" : "quiet",
            word: subscribed ? "Joined" : "Left",
            text: [about, HOW[how] ?? how, ip === undefined ? null : `from ${ip}`]
              .filter((part) => part !== null)
              .join(", "),
          };
        })}
      />
    </section>
  );
}
