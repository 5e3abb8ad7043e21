// Colours for Python: enough to read by, in one pass, and never more than text and spans.

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield match case").split(" ")
);
const TOKEN = new RegExp(
  [
    /(?<c>#[^\n]*)/,
    /(?<s>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|(?![^]))|'''[^]*?(?:'''|(?![^]))|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<m>\b(?:0[xob][\da-f_]+|\d[\d_]*\.?[\d_]*(?:e[+-]?\d+)?j?)\b)/,
    /(?<d>(?<=\b(?:def|class) +)\w+|^[ \t]*@[\w.]+)/,
    /(?<w>[^\W\d]\w*)/,
  ].map((one) => one.source).join("|"),
  "gimu"
);

function highlight(code) {
  const pre = element("pre", "code");
  let end = 0;
  for (const match of code.matchAll(TOKEN)) {
    const { c, s, m, d, w } = match.groups;
    const look = c ? "c" : s ? "s" : m ? "m" : d ? "d" : w && KEYWORDS.has(w) ? "k" : "";
    if (!look) continue;
    pre.append(code.slice(end, match.index), element("span", look, match[0]));
    end = match.index + match[0].length;
  }
  pre.append(code.slice(end));
  return pre;
}
