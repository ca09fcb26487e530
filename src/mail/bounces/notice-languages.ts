/** Patterns for one statement in the languages of mail systems and programs. */
type Patterns = readonly (readonly [pattern: RegExp, languages: string])[];

/** Returns whether a text matches any of the patterns. */
export function matchesAny(patterns: Patterns, text: string): boolean {
  return patterns.some(([pattern]) => pattern.test(text));
}

/** Subjects of notices of a failed delivery. */
export const FAILURE_SUBJECTS: Patterns = [
  [
    /undeliver|deliver(?:y|ed)?\b.{0,40}\b(?:fail|problem|error|delay|status|notif|report|impossible|unsuccess)|fail(?:ed|ure)?\b.{0,30}\b(?:deliver|notice|mail|message|report)|(?:mail|message) (?:system )?(?:error|delivery|failure|could not)|returned (?:mail|message|to sender)|(?:mail|message) (?:was |has been )?returned|(?:could not|couldn'?t|unable to|not) be? ?(?:sent|deliver)|non[- ]?deliver|bounced (?:mail|message)|(?:mail|message) bounced|warning: message|error sending|delayed (?:\d+ hours|mail|message)|(?:mail|message) delayed|mail failed|undelivered|^postfix smtp (?:server|client): errors from|\[ndn\]/i,
    "English",
  ],
  [/banned contents from you|virus .{0,60}from you|bulk email.{0,20} from you/i, "English: amavis"],
  [
    /unzustellbar|nicht (?:zugestellt|zustellbar|ausgeliefert)|zustellung.{0,20}(?:fehl|nicht|verz)/i,
    "German",
  ],
  [
    /notification d['e]|non (?:remis|distribu|délivr)|(?:[ée]chec|impossib\w*|non) .{0,20}(?:remise|distribution|livraison|envoi)/i,
    "French",
  ],
  [/no (?:se (?:ha |pudo |puede )?)?entrega|error (?:de|en la) entrega|no s'ha pogut/i, "Spanish, Catalan"],
  [/n[ãa]o (?:foi |[ée] poss[íi]vel )?entreg|falha .{0,12}entrega/i, "Portuguese"],
  [/mancat[oa] (?:recapito|consegna)|(?:non|impossibile) (?:recapita|consegna)/i, "Italian"],
  [/onbestelbaar|niet (?:bezorgd|afgeleverd)/i, "Dutch"],
  [/niedostarcz|nie (?:można|udało się) dostarczyć|nedoruč|nepodařilo doručit/i, "Polish, Czech, Slovak"],
  [
    /kunde inte levereras|olevere?r|kan ikke leveres|ikke leveret|ikke levert|ei voi(?:tu)? toimittaa|toimitus.{0,20}epäonnistui/i,
    "Swedish, Danish, Norwegian, Finnish",
  ],
  [/teslim edileme|iletileme|kézbesíthetetlen|kézbesítés.{0,20}sikertelen/i, "Turkish, Hungarian"],
  [
    /nelivrabil|livrare.{0,20}(?:imposibil|eșuat)|neisporuč|nedostavljiv|μη παραδοτ|αποτυχία παράδοσης/i,
    "Romanian, Croatian, Slovenian, Greek",
  ],
  [
    /не ?доставлен|не удалось доставить|недоставленн|не вдалося доставити|недоставим/i,
    "Russian, Ukrainian, Bulgarian",
  ],
  [
    /配信(?:不能|失敗|エラー|状況|でき|停止)|送信でき|送信エラー|未達|お届けできません|メールエラー|エラーメール/,
    "Japanese",
  ],
  [
    /退信|未(?:送|传)[达递]|未(?:送達|傳遞)|[无無]法(?:投递|送达|发送|传递|傳|投|送)|(?:投递|发送|發送|投遞)失[败敗]/,
    "Chinese",
  ],
  [/반송|전송 실패|발송 ?실패|배달(?:되지|할 수 없| 실패)/, "Korean"],
  [
    /غير قابل للتسليم|تعذر التسليم|فشل التسليم|לא ניתן למסירה|không (?:thể )?gửi/,
    "Arabic, Hebrew, Vietnamese",
  ],
];

/** Sentences that notices of a failed delivery have. */
export const FAILURE_TEXTS: Patterns = [
  [
    /(?:could not|couldn'?t|cannot|can'?t|was not|wasn'?t|not|unable to|failed to|has not|hasn'?t) (?:be |been |yet been )?(?:deliver|sent|reach|transmit|route|send)|(?:permanent|fatal|transient|delivery) (?:fatal )?(?:error|failure|status|problem)|(?:address|recipient|user)s? failed|did not reach|undeliver|not (?:been )?able to deliver|trouble deliver|delivery attempts|transcript of session follows|failure reasons?\b|user unknown|requested action not taken|delivery (?:to the following )?.{0,40}fail|delivery of the email was stopped|\b5\d\d[ -]\d\.\d\.\d|returned (?:to you|message|mail)|(?:mail|message) has been returned|remote host said|message.{0,40}rejected/i,
    "English",
  ],
  [
    /resolver\.(?:adr|rst)\.|storedrv\.|smtpsend\.|routing\.sizelimit/i,
    "Exchange: names of the error, whatever its language",
  ],
  [
    /konnte.{0,60}nicht .{0,20}zugestellt|konnte nicht|nicht zugestellt|fehler bei der nachrichtenzustellung/i,
    "German",
  ],
  [/n'a (?:pas )?pu|n'ont pas pu|échec de la remise/i, "French"],
  [/no se (?:pudo|ha podido|puede)|error de entrega/i, "Spanish"],
  [/n[ãa]o (?:p[ôo]de|foi poss[íi]vel)|falha na entrega/i, "Portuguese"],
  [/non è stato (?:possibile )?|impossibile recapitare|recapito non riuscito/i, "Italian"],
  [/kon niet|bezorging .{0,60}mislukt/i, "Dutch"],
  [/nie (?:może|mogła|można)|nepodařilo|se nezdařilo|nelze doručit/i, "Polish, Czech"],
  [
    /kunde inte|gick inte att leverera|ikke leveres|mislykke|epäonnistui|ei voitu toimittaa/i,
    "Swedish, Danish, Norwegian, Finnish",
  ],
  [/teslim edileme|kézbesítés.{0,80}nem sikerült|nem (?:lehet|sikerült) kézbesít/i, "Turkish, Hungarian"],
  [
    /не может быть доставлен|не можем доставить|не удалось доставить|не было доставлено|не вдалося доставити/i,
    "Russian, Ukrainian",
  ],
  [/送信できません|宛先|配信でき|配信に失敗|お届けでき/, "Japanese"],
  [/[无無]法(?:投递|送达|发送|传递)|退回|退信|失[败敗]|無法/, "Chinese"],
  [/배달하지 못|배달할 수 없|전송하지 못/, "Korean"],
];

/** Beginnings of the subjects of automatic replies. */
export const AUTOMATIC_SUBJECTS: Patterns = [
  [
    /^auto\S{0,12}[ :-]{1,3}(?:reply|response|responder|antwort|antwoord|svar|odpow\S*|odpov\S*|v[áa]lasz|vastaus|r[áa]spuns|odgovor)/i,
    "English, German, Dutch, Swedish, Danish, Polish, Czech, Hungarian, Finnish and others",
  ],
  [
    /^(?:autoreply|autorespon\w*|autosvar|auto:)|^(?:out of (?:the )?office|ooo\b|vacation|absence|i am away|on (?:leave|holiday))/i,
    "English",
  ],
  [
    /^(?:abwesen|r[ée]ponse automatique|absent du bureau|respuesta autom|fuera de (?:la )?oficina)/i,
    "German, French, Spanish",
  ],
  [
    /^(?:risposta autom|fuori (?:sede|ufficio)|resposta autom|otomatik yan[ıi]t|răspuns automat)/i,
    "Italian, Portuguese, Turkish, Romanian",
  ],
  [
    /^(?:автоответ|автоматическ\S+ ответ|автоматична відповідь|автоматичен отговор|αυτόματη απάντηση)/i,
    "Russian, Ukrainian, Bulgarian, Greek",
  ],
  [
    /^(?:自動(?:返信|応答|回覆|回复)|自动(?:回复|答复|回覆)|不在(?:通知|の)|자동 ?(?:회신|응답|답장))/,
    "Japanese, Chinese, Korean",
  ],
];

/** Prefixes that mail programs put before the subject of a message that is answered or forwarded. */
export const ANSWER =
  /^(?:re|aw|antw|sv|vs|vl|vb|fwd?|wg|tr|rv|r|i|enc|res|odp|pd|ynt|ilt|doorst|továbbítás|отв|пересл|回复|答复|转发|回覆|轉寄|答覆|返信|転送|회신|전달)(?:\[\d{1,3}\])? ?[:：]/i;
