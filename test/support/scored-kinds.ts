/** A message as a team sends it. It is not tracked unless it says so. */
export interface Kind {
  name: string;
  item: Readonly<Record<string, unknown>>;
  /** Beginnings of the rules that its sender's choice sets off: tracked links, or a picture next to few words. */
  chosen?: readonly string[];
}

/** Largest sum of points from each filter, without and with rules of the sender's choice. */
export const MOST = { assassin: 0.1, rspamd: -0.5 } as const;
export const MOST_CHOSEN = { assassin: 2.2, rspamd: 0.4 } as const;

const PARAGRAPH =
  "Your order has left our warehouse and will reach you within three working days. You can follow the parcel, change the place of delivery or ask us a question at any time. ";
const SHORT =
  "<p>Hello Ana,</p><p>your parcel is on its way. It will reach you on Thursday.</p><p>Kind regards<br>Ben</p>";
const UNSUBSCRIBE = '<p><a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>';
const IMAGE =
  '<img src="https://www.example.org/header.png" alt="Spring at Example" width="600" height="200">';

/** Returns html as a newsletter has it, with that many paragraphs. */
function page(paragraphs: number, more = ""): string {
  const cells = `<tr><td style="padding:16px;font-family:Arial,sans-serif">${PARAGRAPH}</td></tr>`.repeat(
    paragraphs,
  );
  return `<!doctype html><html lang="en"><head><title>Your order</title></head><body><table width="600" role="presentation">${cells}</table>${more}</body></html>`;
}

const LINK = '<p><a href="https://www.example.org/orders/17">Follow the parcel</a></p>';
const HOST_LINK = '<p><a href="https://www.example.org/">www.example.org</a></p>';
const PDF = Buffer.from(
  "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
).toString("base64");
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
const EVENT = Buffer.from(
  "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//EN\r\nMETHOD:PUBLISH\r\nBEGIN:VEVENT\r\nUID:1@example.org\r\nDTSTAMP:20260101T090000Z\r\nDTSTART:20260201T090000Z\r\nSUMMARY:Visit\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
).toString("base64");
/** rspamd counts the links that are in one part alone, as tracked ones are; SpamAssassin compares pictures with words. */
const [COUNTED, PICTURE] = ["URI_COUNT_ODD", "HTML_IMAGE_ONLY"];
const ALL = { opens: true, clicks: true };
const AUTO = { opens: "auto", clicks: true };

const TRANSACTIONAL: readonly Kind[] = [
  {
    name: "plain text",
    item: { subject: "Your parcel", text: "Hello Ana,\n\nyour parcel is on its way.\n\nBen\n" },
  },
  { name: "short html", item: { subject: "Your parcel", html: SHORT } },
  { name: "short html, opens auto", item: { subject: "Your parcel", html: SHORT, tracking: AUTO } },
  {
    name: "short html, all tracked",
    item: { subject: "Your parcel", html: SHORT, tracking: ALL },
  },
  { name: "html and a link", item: { subject: "Your order 17", html: page(2, LINK) } },
  {
    name: "html and a tracked link",
    item: { subject: "Your order 17", html: page(2, LINK), tracking: AUTO },
    chosen: [COUNTED],
  },
  {
    name: "link that shows its host",
    item: { subject: "Your order 17", html: page(2, HOST_LINK), tracking: AUTO },
  },
  {
    name: "reset of a password",
    item: {
      subject: "Choose a new password",
      html: `<p>Hello Ana,</p><p>you asked for a new password. The link works for one hour. If it was not you, ignore this message.</p>${LINK}`,
    },
  },
  {
    name: "one-time code",
    item: { subject: "Your code is 417 802", text: "Your code is 417 802. It is valid for ten minutes.\n" },
  },
  {
    name: "receipt",
    item: {
      subject: "Receipt 2026-17",
      html: page(1, "<table><tr><td>Tea</td><td>3.00</td></tr><tr><td>Cake</td><td>4.00</td></tr></table>"),
    },
  },
  {
    name: "invoice as PDF",
    item: {
      subject: "Invoice 2026-17",
      html: SHORT,
      attachments: [{ filename: "invoice.pdf", content: PDF, contentType: "application/pdf" }],
    },
  },
  {
    name: "event for a calendar",
    item: {
      subject: "Our visit",
      text: "We visit you on 1 February.\n",
      attachments: [{ filename: "visit.ics", content: EVENT, contentType: "text/calendar" }],
    },
  },
  {
    name: "welcome",
    item: { subject: "Welcome to Example", html: page(3, LINK), tracking: AUTO },
    chosen: [COUNTED],
  },
  {
    name: "answer in a thread",
    item: {
      subject: "Re: a question",
      text: "Yes, that is right.\n\n> Is it?\n",
      headers: { "In-Reply-To": "<q1@example.com>", References: "<q1@example.com>" },
    },
  },
  {
    name: "to three, with Cc",
    item: {
      subject: "Notes of today",
      text: "The notes are below.\n\nWe agreed on the plan.\n",
      cc: ["Cleo <cleo@example.com>", "dan@example.com"],
    },
  },
  {
    name: "with Reply-To",
    item: {
      subject: "Your request",
      text: "We have your request and answer within a day.\n",
      replyTo: ["help@example.org"],
    },
  },
];

const WORDS: readonly Kind[] = [
  {
    name: "umlauts",
    item: {
      subject: "Ihre Bestellung für Zürich",
      html: "<p>Guten Tag Frau Müller,</p><p>Ihre Bestellung ist unterwegs und kommt am Donnerstag. Schöne Grüße aus Köln.</p>",
    },
  },
  {
    name: "Japanese",
    item: {
      subject: "ご注文ありがとうございます",
      html: "<p>ご注文ありがとうございます。商品は三日以内に届きます。</p>",
    },
  },
  {
    name: "Arabic",
    item: {
      subject: "طلبك في الطريق",
      html: '<div dir="rtl"><p>مرحبا، طلبك في الطريق وسيصل خلال ثلاثة أيام.</p></div>',
    },
  },
  {
    name: "Russian",
    item: { subject: "Ваш заказ отправлен", text: "Здравствуйте! Ваш заказ отправлен и придёт в четверг.\n" },
  },
  { name: "emoji in the subject", item: { subject: "Your order is here 🎉", html: SHORT } },
  { name: "long lines", item: { subject: "Terms", text: `${PARAGRAPH.repeat(12)}\n` } },
];

const BULK: readonly Kind[] = [
  {
    name: "newsletter",
    item: { subject: "Spring at Example", html: page(6, UNSUBSCRIBE), unsubscribeLink: true, tracking: AUTO },
  },
  {
    name: "newsletter, all tracked",
    item: {
      subject: "Spring at Example",
      html: page(6, LINK + UNSUBSCRIBE),
      unsubscribeLink: true,
      tracking: ALL,
    },
    chosen: [COUNTED],
  },
  {
    name: "newsletter, not tracked",
    item: {
      subject: "Spring at Example",
      html: page(6, LINK + UNSUBSCRIBE),
      unsubscribeLink: true,
    },
  },
  {
    name: "newsletter with a picture",
    item: {
      subject: "Spring at Example",
      html: page(6, IMAGE + UNSUBSCRIBE),
      unsubscribeLink: true,
      tracking: AUTO,
    },
    chosen: [PICTURE, COUNTED],
  },
  {
    name: "newsletter, picture inline",
    item: {
      subject: "Spring at Example",
      html: page(6, `<img src="cid:head" alt="Spring" width="600" height="200">${UNSUBSCRIBE}`),
      unsubscribeLink: true,
      attachments: [{ filename: "head.png", content: PNG, contentType: "image/png", contentId: "head" }],
    },
    chosen: [PICTURE, COUNTED],
  },
  {
    name: "newsletter of 80 KB",
    item: { subject: "All of spring", html: page(300, UNSUBSCRIBE), unsubscribeLink: true, tracking: AUTO },
  },
  {
    name: "newsletter in plain text",
    item: {
      subject: "Spring at Example",
      text: `${PARAGRAPH}\n\nUnsubscribe: {{ unsubscribeUrl }}\n`,
      unsubscribeLink: true,
    },
  },
  {
    name: "short bulk html",
    item: {
      subject: "We open on Sunday",
      html: `${SHORT}${UNSUBSCRIBE}`,
      unsubscribeLink: true,
      tracking: AUTO,
    },
  },
  {
    name: "hidden recipients",
    item: {
      subject: "Our new address",
      text: "From Monday you find us at 1 Main Street.\n",
      to: ["office@example.org"],
      bcc: ["ana@example.com"],
    },
  },
];

/** The messages whose scores are shown: 31 kinds. */
export const KINDS: readonly Kind[] = [...TRANSACTIONAL, ...WORDS, ...BULK];
