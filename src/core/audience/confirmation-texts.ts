import type { PropertyValue } from "./properties.ts";
import { languageFor, type PageLanguage } from "./page-texts.ts";

// The words of the message that asks a person to confirm a subscription. A person without English would take it for spam. A
// template of the project is no answer: the message leaves from the service's domain, to people who have agreed to nothing yet.

/** The words of the message. */
export interface ConfirmationTexts {
  subject: string;
  /** Before the names of the topics. `{project}` is the project's name. */
  asked: string;
  /** Before the link. */
  open: string;
  /** After the link. `{days}` is how long it works. */
  ends: string;
}

const TEXTS: Readonly<Record<PageLanguage, ConfirmationTexts>> = {
  en: {
    subject: "Confirm your subscription",
    asked: "You, or someone who gave your address, asked to get mail from {project}:",
    open: "Open this link to confirm it:",
    ends: "It works for {days} days. If you do not want this, ignore this message: you get none of that mail then.",
  },
  de: {
    subject: "Bestätigen Sie Ihr Abonnement",
    asked: "Sie oder jemand, der Ihre Adresse angegeben hat, möchten Nachrichten von {project} erhalten:",
    open: "Öffnen Sie diesen Link, um das zu bestätigen:",
    ends: "Er gilt {days} Tage. Wenn Sie das nicht möchten, ignorieren Sie diese Nachricht. Dann erhalten Sie nichts davon.",
  },
  fr: {
    subject: "Confirmez votre abonnement",
    asked:
      "Vous, ou une personne qui a indiqué votre adresse, avez demandé à recevoir des messages de {project} :",
    open: "Ouvrez ce lien pour confirmer :",
    ends: "Il est valable {days} jours. Si vous ne le souhaitez pas, ignorez ce message : vous ne recevrez rien.",
  },
  es: {
    subject: "Confirme su suscripción",
    asked: "Usted, o alguien que dio su dirección, pidió recibir mensajes de {project}:",
    open: "Abra este enlace para confirmarlo:",
    ends: "Es válido durante {days} días. Si no lo desea, ignore este mensaje y no recibirá nada.",
  },
  it: {
    subject: "Confermi la Sua iscrizione",
    asked: "Lei, o qualcuno che ha fornito il Suo indirizzo, ha chiesto di ricevere messaggi da {project}:",
    open: "Apra questo link per confermare:",
    ends: "È valido per {days} giorni. Se non lo desidera, ignori questo messaggio e non riceverà nulla.",
  },
  pt: {
    subject: "Confirme sua inscrição",
    asked: "Você, ou alguém que informou seu endereço, pediu para receber mensagens de {project}:",
    open: "Abra este link para confirmar:",
    ends: "Ele vale por {days} dias. Se você não quiser isso, ignore esta mensagem e não receberá nada.",
  },
  nl: {
    subject: "Bevestig uw aanmelding",
    asked: "U, of iemand die uw adres opgaf, heeft gevraagd om berichten van {project} te ontvangen:",
    open: "Open deze link om dat te bevestigen:",
    ends: "De link werkt {days} dagen. Wilt u dit niet, negeer dan dit bericht. U ontvangt dan niets.",
  },
  pl: {
    subject: "Potwierdź subskrypcję",
    asked: "Ktoś podał ten adres, aby otrzymywać wiadomości od {project}:",
    open: "Otwórz ten link, aby to potwierdzić:",
    ends: "Link działa przez {days} dni. Jeśli tego nie chcesz, zignoruj tę wiadomość. Nie otrzymasz wtedy nic.",
  },
  sv: {
    subject: "Bekräfta din prenumeration",
    asked: "Du, eller någon som angav din adress, har bett om att få meddelanden från {project}:",
    open: "Öppna den här länken för att bekräfta:",
    ends: "Den gäller i {days} dagar. Om du inte vill ha detta kan du bortse från meddelandet. Då får du inget.",
  },
  cs: {
    subject: "Potvrďte odběr",
    asked: "Někdo zadal tuto adresu, aby dostával zprávy od {project}:",
    open: "Potvrďte to otevřením tohoto odkazu:",
    ends: "Odkaz platí {days} dny. Pokud o zprávy nestojíte, tuto zprávu ignorujte. Pak nedostanete nic.",
  },
  ja: {
    subject: "配信登録の確認",
    asked: "このメールアドレスで {project} からのメールの配信が申し込まれました：",
    open: "確認するには、次のリンクを開いてください：",
    ends: "リンクの有効期間は {days} 日です。心当たりがない場合は、このメールを無視してください。配信は行われません。",
  },
  zh: {
    subject: "请确认您的订阅",
    asked: "您或提供了您地址的人申请接收来自 {project} 的邮件：",
    open: "请打开此链接进行确认：",
    ends: "链接在 {days} 天内有效。如果您不需要，请忽略此邮件，您将不会收到这些邮件。",
  },
};

export function confirmationTexts(language: PageLanguage): ConfirmationTexts {
  return TEXTS[language];
}

/** Properties that may hold a contact's language, such as `de` or `pt_BR`. The first that is a string counts. */
export const LANGUAGE_PROPERTIES = ["language", "locale"] as const;

/** Returns the language of a contact, English if its properties do not say. */
export function languageOf(properties: Readonly<Record<string, PropertyValue>>): PageLanguage {
  const [tag = null] = LANGUAGE_PROPERTIES.map((name) => properties[name]).filter(
    (value) => typeof value === "string",
  );
  return languageFor(tag?.replaceAll("_", "-") ?? null);
}
