/** Words of a request to enter a code, of one or more related languages. */
interface Signs {
  /** Verbs right before a code: "use 204718". */
  before: string;
  /** Verbs right after one: "204718 eingeben". */
  after?: string;
  /** Purposes of entering it: "to sign in". */
  purpose: string;
}

const SIGNS: readonly Signs[] = [
  {
    before:
      "use|using|enter(?:ing)?|typ(?:e|ing)(?: in)?|past(?:e|ing)|input|(?:key|punch|tap|put) in|put|pop|punch|quot(?:e|ing)|give|submit|with",
    purpose:
      "sign(?:ing|ed)?[- ](?:in|on|up)|log(?:ging|ged)?[- ]?(?:in|on)|login|you(?:'|’| a)re in\\b|confirm|verif|approv|unlock|activat|authenti|authoriz|authoris|validat|access|continue|reset|finish|prove|register",
  },
  {
    before:
      "mit|geben sie|gib|nutzen? sie|nutze|verwenden? sie|verwende|benutzen? sie|tippen sie|tippe|bitte",
    after: "(?:bitte )?(?:eingeben|eintippen|eintragen)",
    purpose:
      "anmeld|angemeldet|eingeloggt|einlogg|einzulogg|anzumeld|meld(?:e|en) (?:sie sich|dich) an|bestätig|freigabe|freigeb|verifizier|entsperr|zurücksetz|registrier|zugang|fortfahr",
  },
  {
    before:
      "utilise[rz]|saisisse[rz]|saisir|saisis|entre[rz]|tape[rz]|compose[rz]|recopie[rz]|indique[rz]|avec",
    purpose:
      "connect(?:er|ez|ion)|identifi|confirm|valid|autoris|vérifi|accéder|inscri|continuer|débloqu|réinitialis",
  },
  {
    before:
      "us[ae]|utili[zc]a|utilice|utilize|utilizza|introdu[cz]e|introduzca|introduza|ingres[ae]|escrib[ae]|teclee?a?|digit[ae]|scrivi|inserisci|immetti|insira|informe|con|com",
    purpose:
      "iniciar sesión|inicio de sesión|iniciar sessão|acced|acces|acess|confirm|conferm|verific|entrar|valid|continua|desbloque|sbloc|restablec|redefin|reimpost|autoriz|regist",
  },
  {
    before:
      "gebruik|voer|vul|typ|toets|met|använd|ange|skriv(?: in| inn)?|indtast|brug|bruk|tast(?: inn)?|med",
    purpose:
      "inlog|in te loggen|log in|aan te melden|aanmeld|bevestig|verifi|goed te keuren|toegang|logg?a? ?in|inloggning|logge? ind?n?|bekräft|bekræft|bekreft",
  },
  {
    before: "wpisz|użyj|podaj|wprowadź|zadejte|použijte|käytä|syötä|kirjoita|írja be|adja meg",
    purpose:
      "(?:za)?logow|potwierd|weryfik|autoryz|przihl|přihlá|potvr|ověř|kirjau|vahvist|bejelentkez|megerősít",
  },
  {
    before:
      "числом|цифрами|введите|используйте|укажите|наберите|введіть|використайте|εισαγάγετε|χρησιμοποιήστε",
    purpose: "вход|войти|войд|подтверж?д|авториз|увійти|вход|підтверд|σύνδεση|συνδεθείτε|επιβεβαίωση",
  },
  {
    before: "输入|輸入|使用|填写|填寫|ใส่|ป้อน|nhập|masukkan|gunakan|أدخل|استخدم|הזן|הזינו",
    after: "(?:を|と)?(?:ご)?入力|を使用|(?:을|를)? ?(?:입력|사용)|girin|yazın|kullanın|दर्ज",
    purpose:
      "登录|登入|登錄|确认|確認|验证|認証|本人|ログイン|サインイン|로그인|확인|인증|giriş|onay|doğrula|เข้าสู่ระบบ|ยืนยัน|đăng nhập|xác|masuk|konfirmasi|تسجيل الدخول|تأكيد|להתחבר|כניסה|אימות|लॉग",
  },
];

/** A letter of a script that has spaces between words. */
const LETTER = "[\\p{Script=Latin}\\p{Script=Cyrillic}\\p{Script=Greek}]";
const any = (words: readonly string[]): string => words.filter((word) => word !== "").join("|");
const BEFORE = any(SIGNS.map(({ before }) => before));
const AFTER = any(SIGNS.map(({ after = "" }) => after));
/** Words between the verb and the code. */
const FILLERS =
  "just|simply|einfach|simplement|simplemente|semplicemente|simplesmente|ce|ces|estos|estas|este|questo|questi|dit|deze|nummer|getallen|numero|tę|ten|числа|gewoon|po prostu|просто|the|this|these|that|following|number|digits?|characters|four|six|eight|[468]|please|bitte|die|diese|zahl|ziffern|le|les|nombre|chiffres|el|la|los|número|dígitos|números|il|o|os|números|cijfers|getal|de|het|siffrorna|cyfry|liczbę|цифры|число|ett|numret";

/** Places on a page for a code: "into the box". */
const PLACES =
  "(?:in|into|on) the (?:[\\w-]{1,12} )?(?:box|field|form|prompt|window|screen)|in (?:das|dem|die) (?:feld|fenster|formular|maske)|ins feld|dans (?:la case|le champ|la fenêtre|le formulaire)|en (?:la casilla|el campo|la ventana|el formulario|el recuadro)|nel(?:la casella|la finestra| campo| riquadro| modulo)|n[ao] (?:caixa|campo|janela|formulário)|in (?:het|de) (?:vakje|veld|venster|scherm)|w (?:pol[eu]|okn[oi]e?|okienk[ou])|do (?:pole|okna|políčka)|i (?:rutan|fältet|feltet|ruten|kenttään)|в (?:поле|окно|окне|форму|форме)";

export const PURPOSE = new RegExp(
  `(?<!${LETTER})(?:${any(SIGNS.map(({ purpose }) => purpose))}|${PLACES})|入力欄|輸入框|输入框`,
  "iu",
);
/** The end of the text before a code that only its purpose announces: "Your confirmation: ABC-XYZ". */
export const LABELLED =
  /(?<!\p{L})(?:confirmation|verification|activation|log-?in|sign-?(?:in|on|up)|authentication|reset|bestätigung|anmeldung|freigabe|verifizierung|connexion|validation|vérification|confirmación|verificación|acceso|confirmação|verificação|acesso|conferma|verifica|accesso|bevestiging|verificatie|inloggen|anmelde|potwierdzenie|logowani[ea]|weryfikacja|bekräftelse|inloggning|bekræftelse|bekreftelse|innlogging|vahvistus|potvrzení|ověření|подтверждение|вход|확인|로그인|确认|登录|確認|ログイン)(?:[- ]?(?:number|nummer|zahl|numéro|número|numero|numer))?(?:\s?[:：]|\s(?:is|lautet|ist|est|es|è|é|är|er|to)(?=\s))\s{0,3}["“„«]?$/iu;
/** Words of messages whose "confirmation" names a booking or a purchase. */
export const BOOKED =
  /\b(?:flight|hotel|reserv|booking|guest|night|check-?(?:in|out)|boarding|seat|gate|passenger|table|restaurant|appointment|shipp|deliver|parcel|total|paid|payment|amount|purchase|event|doors|flug|buchung|gäste|termin|zimmer|betrag|vol|vuelo|volo|réserv|prenot|rendez|cita|appuntamento|consulta|afspraak|kamer|lot|rezerw|wizyt|рейс|брон)/iu;
export const ENTERS = new RegExp(`(?<!${LETTER})(?:${BEFORE})(?!${LETTER})|${AFTER}`, "iu");
/** The end of the text before a code that the reader should enter. */
export const ASKED_BEFORE = new RegExp(
  `(?<!${LETTER})(?:${BEFORE})(?:\\s{1,3}(?:${FILLERS})){0,4}\\s{0,3}:?\\s{0,3}["“”'‘«*(\\[]{0,3}$`,
  "iu",
);
/** The start of the text after such a code. */
export const ASKED_AFTER = new RegExp(`^["”’»'*)\\]]{0,3}\\s{0,3}(?:${AFTER})`, "iu");
/** The start of the text after a code with which a sentence begins: "204718 is your login". */
export const PRESENTED =
  /^\s{0,3}(?:(?:is|ist|est|es|è|é|är|er|to|zum|zur|pour|para|per|om|aby|för att|for at|til|для|чтобы|approves|confirms|verifies|unlocks|completes)(?!\p{L})|で|은|는)/iu;
/**
 * The text right after a number that is no count of things: "use 5000 points to …" has a noun there.
 */
export const NO_NOUN =
  /^["”’»'*)\]]{0,3}(?:$|[.,;:!。,、)]|\s{0,3}[^\p{L}\p{N}\s]|\s{0,3}[^\p{Script=Latin}\p{Script=Cyrillic}\s]|\s{1,3}(?:to|in|on|at|as|for|there|when|and|or|by|before|now|today|here|instead|into|within|until|if|voor|bij|binnen|innerhalb|bis|hasta|entro|até|inom|до|zum|zur|ein|an|um|auf|bitte|eingeben|eintippen|melden|pour|sur|dans|afin|para|en|no|na|em|per|nella|nell['’]app|nel|su|sul|om|op|aby|żeby|w|för|för|for|at|på|i|til|чтобы|для|на|в|girin|yazın|kullanın|để|untuk)(?!\p{L}))/iu;
/** Codes of other kinds, with which no reader signs in. */
export const OTHER_CODES = new RegExp(
  [
    "(?:zip|post(?:al)?|area|country|dial(?:l?ing)?|source|dress|[qb]a?r|promo(?:tion(?:al)?)?|discount|coupon|voucher|gift|referral|booking|tracking|error|status|sort|airport|colou?r)[- ]?codes?",
    "codes? (?:of conduct|reviews?|base|freeze|frozen|postal|promo|barres|de réduction|erreur)|codes? (?=\\S+ (?:at|bei|beim) checkout)",
    "códigos? (?:postal|promocional|de (?:descuento|barras|desconto|reserva))|codice (?:postale|fiscale|sconto|promo\\w*|prenotazione)",
    "(?:gutschein|rabatt|aktions|quell|postleit|buchungs|fehler|kortings|streepjes|boekings)-?code?s?|rabattkod|kod (?:pocztowy|rabatowy|kreskowy|rezerwacji)|промокод|почтовый код|штрихкод|优惠码|邮政编码|クーポンコード|郵便",
  ].join("|"),
  "giu",
);
