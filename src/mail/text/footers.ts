/** Maximum characters of a line that may be a footer. */
const MAX_FOOTER_CHARS = 160;
/** Maximum characters of the part of a footer that names its program. */
const MAX_NAMED_CHARS = 90;

/**
 * Words with which programs begin "Sent from my …", by language. The words after them decide, because a sentence
 * may begin in the same way.
 */
const SENT = new RegExp(
  `^(?:${[
    "sent (?:from|via|with|using|by)|this (?:e-?mail|message) was sent from",
    "gesendet (?:von|mit|über|aus|via)|von mein(?:em|er)|diese (?:nachricht|e-?mail) wurde (?:von|mit)|von (?=yahoo)",
    "envoyé (?:de|depuis|à partir|avec|via|par)|provenance",
    "enviado (?:desde|do|de|da|a partir|con|com|pelo|por|via|mediante)|mensaje enviado desde|enviada do",
    "inviato (?:da|dal|dalla|con|tramite)|(?:verzonden|verstuurd) (?:vanaf|met|via|van|vanuit|door)",
    "skickat (?:från|med|via)|sendt (?:fra|med|via)|sent fra|lähetetty|lähetin",
    "отправлено (?:с|из|через)|надіслано (?:з|із)|изпратено от|простите за краткость",
    "wysłan[eoya] (?:z|ze|za|przez)|od(?:esláno|oslané) (?:z|ze|pomocí)|pos(?:lano|lato) (?:s|z|sa|iz)",
    "küldve|trimis (?:de|din)|saadetud|nosūtīts|išsiųsta|στάλθηκε από|εστάλη από",
    "发自|發自|从我的|從我的|나의|내 |נשלח מ|أ\\p{M}?رسلت من|تم الإرسال من|ส่งจาก|được gửi từ|đã gửi từ|dikirim dari|gönder",
  ].join("|")})`,
  "iu",
);
/** Programs and devices that write such a line. */
const PROGRAM =
  /iPhon|iPad|\biPod|\bApple (?:Mail|Watch)|\bMacBook|\bmy Mac\b|Android|\bSamsung|\bGalaxy\b|\bHuawei|\bXiaomi|\bRedmi|\bHONOR|\bOPPO|\bOnePlus|\bXperia|\bBlackBerry|\bWindows (?:Phone|Mail|\d)|\bfor Windows|\b(?:für|pour|para|per|voor|til|för|dla|pro) Windows|\bOutlook\b|\bGmail\b|\bYahoo\b|\bAOL\b|\bProton ?Mail|\bSpark\b|\bAirmail\b|\bMailbird\b|\bThunderbird\b|\bK-9\b|\bGMX\b|\bWEB\.DE\b|\bZoho Mail|\bFairEmail|\bBlue ?Mail|\bAqua ?Mail|\bmyMail\b|\bSuperhuman\b|\bTutanota|\bTuta\b|\bMailspring|\beM Client|\bCanary Mail|\bYandex|Яндекс|Mail\.ru|\bMail ?App\b|\bMail-App\b|Телефона/iu;
/** "My" and a device, without its maker's name. */
const MY_DEVICE =
  /\b(?:my|meine[mr](?:\/meiner)?|mon|mi|meu|mio|mijn|min|mitt|mojego|moje|svého|môjho) (?:\S{1,15} ){0,2}(?:(?:smart|mobile |cell ?|i)?phone|mobile(?: device)?|device|tablet|handy|mobiltelefon|smartphone|t[eé]l[eé]phone|portable|mobile|appareil|m[oó]vil|celular|tel[eé]fono|dispositivo|cellulare|telefoon|apparaat|mobil|telefon|enhet|enhed|telefonu|komórki|mobilu)\b|мо(?:его|го) (?:телефона?|смартфона|мобильного)/iu;
/** A second sentence that asks for patience, or invites to the program. */
const EXCUSE =
  /\bapp\b|excus|sorry|pardon|forgiv|brev|brièv|kürze|typos|tippfehler|kort|fåordig|beknopt|zwięz|краткост|disculp|perdon/iu;
/** Lines that advertise a program, in the word order of each language. */
const INVITATIONS: readonly RegExp[] = [
  /^(?:get|hol|hole|download|obtenez|télécharge[rz]|obt[eé]n|obtener|descarg\p{L}{1,4}|obter|obtenha|baixar|scarica|ottieni|verkrijg|haal|hämta|skaffa|hent|last ned|få|hanki|lataa|pobierz|uzyskaj|získ\p{L}{2,8}|stáhn\p{L}{2,6}|stiahn\p{L}{2,6}|scărca\p{L}{0,4}|obține\p{L}{0,3}|загруз\p{L}{2,5}|скача\p{L}{2,4}|завантаж\p{L}{1,4}|preuzmi\p{L}{0,3}|dapatkan|tải|获取|取得) (?:\S{1,12} ){0,2}outlook .{2,24}(?:ios|android)$/iu,
  /^outlook (?:für|for|voor) (?:ios|android) (?:beziehen|herunterladen|laden|holen|downloaden|ophalen)$/iu,
  /^yahoo mail ?: [^.!?]{1,60}$/iu,
];
/** An invitation with the store's address, which no sentence has. */
const STORE = /^.{0,50}\bOutlook\b.{1,24}\b(?:iOS|Android)\b.{0,40}[<(]https:\/\/aka\.ms\/\S{1,40}$/u;
/** Languages that put the device first. */
const DEVICE_FIRST = /^iP(?:hone|ad)(?:['’]umdan gönderildi| ?から送信)$/u;

/** Returns whether a line is one that a device or a program adds below a message. */
export function isFooter(line: string): boolean {
  if (line.length > MAX_FOOTER_CHARS) return false;
  const shown = line.trim();
  if (STORE.test(shown) || DEVICE_FIRST.test(shown)) return true;
  const bare = shown
    .replace(/[<(]https?:\/\/[^<>()\s]{1,120}[>)]/g, "")
    .replace(/[[\]*]/g, "")
    .replace(/^-- ?(?=\S)/, "")
    .trim();
  if (INVITATIONS.some((pattern) => pattern.test(bare))) return true;
  if (!SENT.test(bare)) return false;
  const [named = "", ...more] = bare.split(/(?<=[.!]) /);
  if (/[,;?]/.test(named) && !EXCUSE.test(named)) return false;
  if (more.length > 0 && !EXCUSE.test(more.join(" "))) return false;
  return named.length <= MAX_NAMED_CHARS && (PROGRAM.test(named) || MY_DEVICE.test(named));
}
