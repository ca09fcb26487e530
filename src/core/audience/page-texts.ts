// The words of the page behind an unsubscribe link. A reader without English would miss them; a translation by the browser is
// no answer, because mail programs open the page in a view without one.

/** Languages of the page of unsubscribe links, by their BCP 47 tag. The first is for readers of all others. */
export const PAGE_LANGUAGES = [
  "en",
  "de",
  "fr",
  "es",
  "it",
  "pt",
  "nl",
  "pl",
  "sv",
  "cs",
  "ja",
  "zh",
] as const;
export type PageLanguage = (typeof PAGE_LANGUAGES)[number];

/** The words of the page. */
export interface PageTexts {
  heading: string;
  /** Button that leaves, and button that joins. */
  leave: string;
  join: string;
  leaveAll: string;
  joinAll: string;
  /** Heading and sentence after a choice. */
  left: string;
  noMore: string;
  /** Sentence for a reader who gets nothing. */
  getsNone: string;
  saved: string;
  /** State of a topic. */
  subscribed: string;
  unsubscribed: string;
}

const FIELDS = [
  "heading",
  "leave",
  "join",
  "leaveAll",
  "joinAll",
  "left",
  "noMore",
  "getsNone",
  "saved",
  "subscribed",
  "unsubscribed",
] as const satisfies readonly (keyof PageTexts)[];

/** The words in the order of `FIELDS`. */
const WORDS: Readonly<Record<PageLanguage, readonly string[]>> = {
  en: [
    "Email preferences",
    "Unsubscribe",
    "Subscribe",
    "Unsubscribe from everything",
    "Subscribe again",
    "Unsubscribed",
    "You will get no more of these messages.",
    "You get none of these messages.",
    "Your choice has been saved.",
    "Subscribed",
    "Not subscribed",
  ],
  de: [
    "E-Mail-Einstellungen",
    "Abbestellen",
    "Abonnieren",
    "Alles abbestellen",
    "Wieder abonnieren",
    "Abbestellt",
    "Sie erhalten keine dieser Nachrichten mehr.",
    "Sie erhalten keine dieser Nachrichten.",
    "Ihre Auswahl wurde gespeichert.",
    "Abonniert",
    "Nicht abonniert",
  ],
  fr: [
    "Préférences d’e-mail",
    "Se désabonner",
    "S’abonner",
    "Se désabonner de tout",
    "Se réabonner",
    "Désabonné",
    "Vous ne recevrez plus ces messages.",
    "Vous ne recevez aucun de ces messages.",
    "Votre choix a été enregistré.",
    "Abonné",
    "Non abonné",
  ],
  es: [
    "Preferencias de correo",
    "Cancelar la suscripción",
    "Suscribirse",
    "Cancelar todas las suscripciones",
    "Suscribirse de nuevo",
    "Suscripción cancelada",
    "Ya no recibirá estos mensajes.",
    "No recibe ninguno de estos mensajes.",
    "Su elección se ha guardado.",
    "Suscrito",
    "No suscrito",
  ],
  it: [
    "Preferenze e-mail",
    "Annulla iscrizione",
    "Iscriviti",
    "Annulla tutte le iscrizioni",
    "Iscriviti di nuovo",
    "Iscrizione annullata",
    "Non riceverà più questi messaggi.",
    "Non riceve nessuno di questi messaggi.",
    "La scelta è stata salvata.",
    "Iscritto",
    "Non iscritto",
  ],
  pt: [
    "Preferências de e-mail",
    "Cancelar inscrição",
    "Inscrever-se",
    "Cancelar todas as inscrições",
    "Inscrever-se novamente",
    "Inscrição cancelada",
    "Você não receberá mais estas mensagens.",
    "Você não recebe nenhuma destas mensagens.",
    "Sua escolha foi salva.",
    "Inscrito",
    "Não inscrito",
  ],
  nl: [
    "E-mailvoorkeuren",
    "Afmelden",
    "Aanmelden",
    "Voor alles afmelden",
    "Opnieuw aanmelden",
    "Afgemeld",
    "U ontvangt deze berichten niet meer.",
    "U ontvangt geen van deze berichten.",
    "Uw keuze is opgeslagen.",
    "Aangemeld",
    "Niet aangemeld",
  ],
  pl: [
    "Ustawienia e-maili",
    "Zrezygnuj z subskrypcji",
    "Subskrybuj",
    "Zrezygnuj ze wszystkich",
    "Subskrybuj ponownie",
    "Zrezygnowano z subskrypcji",
    "Nie będziesz już otrzymywać tych wiadomości.",
    "Nie otrzymujesz żadnej z tych wiadomości.",
    "Twój wybór został zapisany.",
    "Subskrybowane",
    "Niesubskrybowane",
  ],
  sv: [
    "E-postinställningar",
    "Avprenumerera",
    "Prenumerera",
    "Avprenumerera på allt",
    "Prenumerera igen",
    "Avprenumererad",
    "Du får inte fler av de här meddelandena.",
    "Du får inga av de här meddelandena.",
    "Ditt val har sparats.",
    "Prenumererar",
    "Prenumererar inte",
  ],
  cs: [
    "Předvolby e-mailů",
    "Odhlásit odběr",
    "Přihlásit odběr",
    "Odhlásit vše",
    "Znovu přihlásit",
    "Odběr odhlášen",
    "Tyto zprávy už nebudete dostávat.",
    "Nedostáváte žádné z těchto zpráv.",
    "Vaše volba byla uložena.",
    "Přihlášeno",
    "Nepřihlášeno",
  ],
  ja: [
    "メール配信の設定",
    "配信を停止する",
    "配信を希望する",
    "すべての配信を停止する",
    "配信を再開する",
    "配信を停止しました",
    "今後、これらのメールは届きません。",
    "現在、これらのメールは配信されていません。",
    "設定を保存しました。",
    "配信中",
    "配信停止中",
  ],
  zh: [
    "邮件偏好设置",
    "退订",
    "订阅",
    "退订全部邮件",
    "重新订阅",
    "已退订",
    "您将不会再收到此类邮件。",
    "您目前不会收到此类邮件。",
    "您的选择已保存。",
    "已订阅",
    "未订阅",
  ],
};

/** Returns the words of the page in a language. */
export function pageTexts(language: PageLanguage): PageTexts {
  const words = WORDS[language];
  return Object.fromEntries(FIELDS.map((field, at) => [field, words[at] ?? ""])) as unknown as PageTexts;
}

/**
 * Returns the words that a project gives the page in place of ours, one to a line: `leaveAll: Stop all mail`. Other lines are
 * ignored.
 */
export function ownTexts(lines: string): Partial<PageTexts> {
  const named = lines.split("\n").flatMap((line) => {
    const [, name, words = ""] = /^\s*(\w+):(.+)$/.exec(line) ?? [];
    const field = FIELDS.find((one) => one === name);
    return field === undefined || words.trim() === "" ? [] : [[field, words.trim()]];
  });
  return Object.fromEntries(named);
}

/** Maximum number of entries of an Accept-Language field that are read. */
const MAX_ACCEPTED = 20;

/** Returns the page's language that a reader likes best (RFC 9110 §12.5.4), English if there is none. */
export function languageFor(accepted: string | null): PageLanguage {
  const wanted = (accepted ?? "")
    .split(",", MAX_ACCEPTED)
    .map((entry) => {
      const [tag = "", ...parameters] = entry.trim().toLowerCase().split(";");
      const quality = parameters
        .map((text) => /^\s*q=([01](?:\.\d{1,3})?)\s*$/.exec(text)?.[1])
        .find(Boolean);
      return { base: tag.split("-", 1)[0] ?? "", quality: Number(quality ?? 1) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  for (const { base } of wanted) {
    const known = PAGE_LANGUAGES.find((language) => language === base);
    if (known !== undefined) return known;
  }
  return PAGE_LANGUAGES[0];
}
