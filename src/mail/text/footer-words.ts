/** Returns a pattern of whole words, any of the lists. */
const words = (flags: string, ...lists: readonly string[]): RegExp =>
  new RegExp(`^(?:${lists.join("|").replace(/\s+/g, "|")})$`, flags);

/** How footers begin that name a device or a program, by language. */
export const SENT_FROM = new RegExp(
  `^(?:${[
    "sent from|sent via|sent on|(?:this )?(?:e-?mail|message) (?:was )?sent (?:from|via)|mailed from",
    "gesendet (?:von|über|aus|via)|von|diese (?:nachricht|e-?mail) wurde (?:von|mit)",
    "envoyé (?:de|depuis|à partir(?: d[eu]?)?|via)|provenance",
    "envia(?:do|da) (?:desde|do|de|da|a partir d[eo]|pelo|por|via)|mensaje enviado desde",
    "inviat[oa] (?:da|dal|dalla|tramite)|(?:verzonden|verstuurd) (?:vanaf|via|van|vanuit)",
    "skicka(?:t|des) (?:från|via)|sendt (?:fra|via)|sent fra|lähetetty|lähetin",
    "отправлено (?:с|со|из|через)|надіслано (?:з|із|зі)|изпратено от",
    "wysłan[eoya] (?:z|ze|przez)|od(?:esláno|oslané) (?:z|ze)|pos(?:lano|lato) (?:s|z|sa|iz)|odesláno",
    "trimis (?:de|din|de pe)",
  ].join("|")})(?= )`,
  "iu",
);
/** How footers begin that name a program. */
export const SENT_WITH =
  /^(?:sent (?:with|using|by)|gesendet mit|envoyé avec|enviad[oa] (?:con|com|mediante)|inviat[oa] con|(?:verzonden|verstuurd) (?:met|door)|skickat med|sendt med|wysłan[eoya] za|od(?:esláno|oslané) pomocí|простите за краткость, создано в)(?= )/iu;
/** Footers of languages in which the words below are not known: how they begin or end. */
export const SENT_ELSEWHERE =
  /^(?:küldve|saadetud|nosūtīts|išsiųsta|στάλθηκε από|εστάλη από|나의|내 |נשלח מ|أ\p{M}?رسلت من|تم الإرسال من|ن\p{M}?شر من|ส่งจาก|được gửi từ|đã gửi từ|dikirim dari|[来來]自我|[发發从從](?:自)?我的|从 Windows)|(?:küldve|gönderildi|edinin|から送信|보냄)$|^.{0,20}(?:を入手(?:する)?|받기)$/iu;
/** The verb at the end of a German footer. */
export const CLOSED = / (?:gesendet|verschickt|geschickt|versendet)$/iu;

/** Names of programs. Some are words of letters as well, so their case counts. */
export const PROGRAMS = new RegExp(
  `${words("", "HEY Front Missive Superhuman Spark Polymail Newton Shortwave Nine Mimestream Postbox Edison Boxer TypeApp Hiri Airmail Boomerang Outlook Gmail GMail AOL GMX Thunderbird Mailspring Mailbird Tuta Tutanota Fastmail Mailfence MailApp UOL Onet Seznam\\.cz FairEmail myMail Canary Notion Protonmail ProtonMail Proton Yandex\\S{0,8} Яндекс\\S{0,6} K-9 K9 1&1 WEB\\.DE Mail\\.ru Roundcube WhatsApp eM Kiwi").source}|^(?:[Yy]ahoo|BlueMail|AquaMail|[Oo]utlook(?:['’]?\\p{Ll}{1,4})?)$`,
  "u",
);
/** Names of devices and their systems, with the endings of other languages. */
export const DEVICES =
  /^(?:iphon|ipad|ipod|imac|macbook|android|ios|windows|chromebook)\p{L}{0,7}(?:['’:]\p{L}{1,6})?$/iu;
/** Makers of devices, and firms that sell them, which send other things than mail as well. */
export const MAKERS = words(
  "iu",
  "samsung galaxy huawei xiaomi redmi poco honor oppo oneplus xperia sony blackberry nokia motorola moto lg htc google pixel fairphone lenovo surface apple",
);
/** "My", by language. */
export const OWNERS = words(
  "iu",
  "my our mein mein(?:e|em|er|en|es) mon ma mes mi mis meu minha mio mia mijn min mitt mit mojego mojej moj(?:e|ego|ej)? mého svého môjho моего моей мого моєї моя",
);
/** Names for a device. */
export const DEVICE_NOUNS = words(
  "iu",
  "(?:smart|i|cell|mobile)?phone mobile cell device tablet handset laptop computer pc mac watch handy handys (?:mobil|smart)?telefon(?:s|u|a|es|ul|o)? smartphone(?:s|a|u)? (?:android-?|mobil)?gerät(?:s|es)? t[eé]l[eé]phone telefone portable appareil m[oó]vil celular tel[eé]fono dispositivo cellulare telefoon apparaat mobil(?:u|en|telefon)? enhet enhed telefonu komórki urządzenia mobilu puhelimestani телефона смартфона устройства планшета телефону мобильного мобильной",
);
/** The other words of such lines. */
export const GLUE = words(
  "iu",
  "the a for on via with using from app apps application mail email e-mail mails secure encrypted mobile client wireless network version desktop web workspace zoho for verizon t-mobile at&t vodafone o2 telekom orange sfr free bouygues sprint u\\.s\\.cellular telstra bell rogers lte \\dg",
  "der die das dem den einem einer für mit über auf aus von mobilen sicheren wurde",
  "l d le la de du depuis pour avec sur par courriel courrier messagerie sécurisée boîte",
  "el desde con para en correo electrónico aplicación o do da no na com aplicativo correio il dal dalla per su posta dell'app libero tiscali",
  "het met voor op vanaf vanuit ziggo med för till til på fra från e-post epost post appen",
  "z ze za dla systemu pomocą aplikacji mobilnej poczta wp pro pomocí aplikace pe ul vmware sovelluksesta с со из через для на приложения почты почта з із зі пошти",
);
/** A model's name after its maker. */
export const MODEL =
  /^(?:[a-z]{0,4}\d{1,4}[a-z]{0,3}\+?|pro|max|plus|ultra|mini|edge|note|lite|air|fold|flip|se|xr|xs|x|z|g|neo|ace|prime|play)$/iu;
/** "Telekom Mail App", and the same in other word orders. */
export const APP =
  /(?:\b[\p{L}\d.&]{2,12} )?\bmail[ -]app\b|\bapplication (?:mobile )?mail \p{Lu}\p{L}{1,10}|\baplikacji (?:mobilnej )?poczta \p{Lu}\p{L}{1,10}|\bapple mail\b|\b(?:workspace|zoho|edison|newton|notion|aqua|blue|libero|tiscali|uol|ziggo|orange|sfr) ?(?:e-?)?mail\b/giu;
/** Sentences after a footer's first one: an excuse for typing errors and brevity, or an invitation. */
export const EXCUSES =
  /^(?=.{3,90}$)(?:.{0,40}\b(?:brevity|brief\p{L}{0,4}|typos?|spelling|autocorrect|terse\p{L}{0,4}|ad-free)\b.{0,30}|.{0,40}(?:brièveté|kürze|tippfehler|brevedad|brevidade|brevit|korth|fåordig|beknopt|zwięz|краткост|стислість).{0,30}|.{0,24}\bapp\.?)$/iu;
/** Lines that are footers as a whole: advertisements, in the word order of each language. */
export const WHOLE: readonly RegExp[] = [
  /^(?:get|hol|hole|download|obtenez|télécharge[rz]|obt[eé]n|obtener|descarg\p{L}{1,4}|obter|obtenha|baixar|scarica|ottieni|verkrijg|haal|hämta|skaffa|hent|last ned|få|hanki|lataa|hae|pobierz|uzyskaj|získ\p{L}{2,8}|stáhn\p{L}{2,6}|stiahn\p{L}{2,6}|scărca\p{L}{0,4}|obține\p{L}{0,3}|загруз\p{L}{2,5}|скача\p{L}{2,4}|завантаж\p{L}{1,4}|preuzmi\p{L}{0,3}|dapatkan|tải|获取|取得) (?:\S{1,12} ){0,2}(?:outlook|bluemail|typeapp|gmail|spark|aqua mail) .{2,24}(?:ios|android|mac|androidille|ios:lle)$/iu,
  /^hanki outlook (?:androidille|ios:lle)$/iu,
  /^outlook (?:für|for|voor) (?:ios|android) (?:beziehen|herunterladen|laden|holen|downloaden|ophalen)$/iu,
  /^yahoo mail ?: \p{L}+, \p{L}+,? [\p{L} ]{2,40}$/iu,
  /^.{0,50}\bOutlook\b.{1,24}\b(?:iOS|Android)\b.{0,40}[<(]https:\/\/aka\.ms\/\S{1,40}$/u,
  /^iP(?:hone|ad)(?:['’]umdan gönderildi| ?から送信)$/u,
  /^(?:iOS|Android)(?: 版|용| için) Outlook\S{0,4} (?:を入手(?:する)?|받기|edinin)$/u,
  /^(?:[发發来來從从]?自我的|從我的|从我的|[来來]自我的) ?(?:iPhone|iPad|\p{Script=Han}{1,6}(?:手机|手機|平板))(?: ?(?:傳送|发送))?$/u,
  /^从 Windows 版邮件发送$/u,
  /^Простите за краткость, создано в K-9 Mail\.?$/u,
];
