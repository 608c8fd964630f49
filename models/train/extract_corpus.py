#!/usr/bin/env python3
"""Build the training corpus from local git clones of single-book Project Gutenberg repositories.

usage: extract_corpus.py CLONES_DIR OUT_DIR

Every clone, CLONES_DIR/NAME_NUMBER, holds one public-domain book; NUMBER is its Project Gutenberg number.  The plain text (or, where there is
none, the HTML) is taken out of the newest commit, the Project Gutenberg header, footer and
editorial notes are removed, paragraphs are unwrapped to one line each, and
typography is normalised to ASCII.  OUT_DIR/books/ID.txt and OUT_DIR/titles.tsv are written.
"""
import html, os, re, subprocess, sys, glob, unicodedata

CLONES, OUT = sys.argv[1], sys.argv[2]
os.makedirs(OUT + "/books", exist_ok=True)


def git(gd, *a):
    return subprocess.run(["git", "--git-dir=" + gd, *a], check=True, stdout=subprocess.PIPE).stdout


def decode(b):
    for enc in ("utf-8-sig", "cp1252", "latin-1"):
        try:
            return b.decode(enc)
        except UnicodeDecodeError:
            pass


def strip_html(s):
    s = re.sub(r"(?is)<(head|style|script|table)\b.*?</\1>", " ", s)
    s = re.sub(r"(?is)<span class=.pagenum.*?</span>", " ", s)
    s = re.sub(r"(?i)<br\s*/?>", "\n", s)
    s = re.sub(r"(?i)</?(p|div|h\d|li|tr|blockquote|hr|ul|ol)\b[^>]*>", "\n\n", s)
    s = re.sub(r"<[^>]+>", "", s)
    return html.unescape(s)


MAP = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "--", "\u2013": "-", "\u2026": "...",
       "\u00e6": "ae", "\u00c6": "Ae", "\u0153": "oe", "\u0152": "Oe", "\u00a0": " ", "\u00a3": "L", "\u2032": "'",
       "\u00ab": '"', "\u00bb": '"', "\u2212": "-", "\u00df": "ss", "\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L"}


def to_ascii(s):
    s = "".join(MAP.get(c, c) for c in s)
    s = unicodedata.normalize("NFKD", s)
    return s.encode("ascii", "ignore").decode()


START = re.compile(r"(?im)^.*(\*\*\*\s*START OF (THE|THIS) PROJECT GUTENBERG.*|\*END\*\s*THE SMALL PRINT!.*|END THE SMALL PRINT.*)$")
END = re.compile(r"(?im)^.*(\*\*\*\s*END OF (THE|THIS) PROJECT GUTENBERG|End of (the |this )?Project Gutenberg|End of The Project Gutenberg).*$")
JUNK = re.compile(r"(?i)gutenberg|e-?text|transcriber|proofread|copyright|all rights reserved|published by|illustrated by|"
                  r"\bpublishers?\b|printed in|http|www\.|digital|\bscan(s|ned)\b|\[illustration|footnote|\bPREFACE\b|first published|ebook|"
                  r"\bNew York:|\bBoston:|\bLondon:|LONGMANS|GROSSET|DUNLAP|edited by|Produced by|prepared by")


def clean(t):
    t = t.replace("\r\n", "\n").replace("\r", "\n")
    ms = list(START.finditer(t))
    if ms:
        t = t[ms[-1].end():]
    m = END.search(t)
    if m:
        t = t[:m.start()]
    t = to_ascii(t)
    t = re.sub(r"\[(Illustration|Footnote|Transcriber|Frontispiece|Blank|Pg|Page)[^\]]*\]", " ", t, flags=re.I)
    t = re.sub(r"\[\d+\]|\{\d+\}", "", t)
    t = t.replace("_", "").replace("=", "").replace("+", "")
    t = re.sub(r"\*+", "", t)
    out = []
    for p in re.split(r"\n\s*\n", t):
        lines = p.split("\n")
        body = [l.strip() for l in lines if l.strip()]
        if not body:
            continue
        p = re.sub(r"\s+", " ", " ".join(body)).strip()
        p = re.sub(r"\s*--+\s*", "--", p)
        if JUNK.search(p) and len(p) < 1200:
            continue
        letters = sum(c.isalpha() for c in p)
        if letters < 2 or letters < 0.55 * len(p):
            continue
        head = sum(c.isupper() for c in p) > 0.6 * letters
        if head and len(p) < 90:                       # a chapter or story heading
            out.append(("H", p))
        elif len(p) < 60 and not re.search(r"[.!?\"':,;)-]$", p):
            out.append(("H", p))                       # a heading in title case, list of contents
        else:
            out.append(("P", p))
    # contents lists: a run of headings keeps only its last line; headings become document breaks
    docs, cur = [], []
    for k, p in out:
        if k == "H":
            if cur:
                docs.append(cur)
            cur = []
        else:
            cur.append(p)
    if cur:
        docs.append(cur)
    # keep documents that are prose of some length
    docs = ["\n".join(d) for d in docs]
    return [d for d in docs if len(d) > 400 and d.count(" ") > 60]


rows = []
for d in sorted(glob.glob(CLONES + "/*_[0-9]*")):
    gd = d + "/.git" if os.path.isdir(d + "/.git") else d
    name = os.path.basename(d)
    num = name.rsplit("_", 1)[1]
    files = git(gd, "ls-tree", "-r", "--name-only", "HEAD").decode("utf8", "replace").split("\n")
    pick = None
    for cand in (f"{num}-0.txt", f"{num}-8.txt", f"{num}.txt", f"{num}-h/{num}-h.htm"):
        if cand in files:
            pick = cand
            break
    if not pick:
        c = [f for f in files if f.endswith(".txt") and "LICENSE" not in f]
        pick = c[0] if c else None
    if not pick:
        print("no text", name, file=sys.stderr)
        continue
    t = decode(git(gd, "show", "HEAD:" + pick))
    if pick.endswith(".htm"):
        t = strip_html(t)
    meta = git(gd, "show", "HEAD:metadata.yaml").decode("utf8", "replace") if "metadata.yaml" in files else ""
    m = re.search(r"(?m)^title:\s*(.+)$", meta)
    title = m.group(1).strip().strip("'\"") if m else name.rsplit("_", 1)[0].replace("-", " ")
    m = re.search(r"(?m)agent_name:\s*(.+)$", meta)
    author = m.group(1).strip().strip("'\"") if m else ""
    docs = clean(t)
    txt = "\n\n".join(docs)
    open(f"{OUT}/books/{num}.txt", "w").write(txt)
    rows.append((num, title, author, pick, len(t), len(txt), len(docs)))
rows.sort(key=lambda r: int(r[0]))
with open(OUT + "/titles.tsv", "w") as f:
    for r in rows:
        f.write("\t".join(map(str, r)) + "\n")
print(len(rows), "books", sum(r[5] for r in rows), "bytes")
