import type { Broadcast, BroadcastResults } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import { LocalTime } from "../../components/time.tsx";
import { countText } from "../../words/amounts.ts";
import { rateText, verdictText } from "./ab-words.ts";

type TestResults = NonNullable<BroadcastResults["abTest"]>;

interface AbResultsProps {
  record: Broadcast;
  results: TestResults;
}

/** The verdict of a test of two subjects, and the figures of both. */
export function AbResults({ record, results }: AbResultsProps) {
  const { abTest, status } = record;
  if (abTest === null) return null;
  const { decision } = abTest;
  const waits = decision === null && (status === "sending" || status === "paused");
  const decidesAt = waits ? abTest.decideAt : null;
  return (
    <section class="form" aria-labelledby="subjects">
      <div>
        <h3 id="subjects">{verdictText(abTest, results)}</h3>
        <p class="quiet">
          {decision?.why ?? results.why}
          {decidesAt === null ? null : (
            <>
              {" "}
              It is decided at <LocalTime at={decidesAt} />.
            </>
          )}
        </p>
      </div>
      <dl class="facts">
        <Fact name="A" value={<bdi>{results.a.subject}</bdi>} />
        <Fact name="B" value={<bdi>{results.b.subject}</bdi>} />
      </dl>
      <Figures results={results} />
    </section>
  );
}

const ROWS: readonly [name: string, of: (figures: TestResults["a"]) => string][] = [
  ["Messages", ({ recipients }) => countText(recipients)],
  ["Opened", ({ opened }) => rateText(opened)],
  ["Clicked", ({ clicked }) => rateText(clicked)],
  ["Unsubscribed", ({ unsubscribed }) => countText(unsubscribed)],
];

/** The figures of both subjects next to each other. */
function Figures({ results: { a, b } }: { results: TestResults }) {
  return (
    <table class="table">
      <caption class="hidden">By subject</caption>
      <thead>
        <tr>
          <th scope="col">Subject</th>
          <th scope="col" class="number">
            A
          </th>
          <th scope="col" class="number">
            B
          </th>
        </tr>
      </thead>
      <tbody>
        {ROWS.map(([name, of]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number">{of(a)}</td>
            <td class="number">{of(b)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
